#include "backends/cuda/codegen/loop_reads.h"

#include "backends/shared/run_text.h"

namespace reel::cuda {

using Kind = StepCall::Kind;

bool reads_shared(const StepCall& call) { return call.crosses() || call.has_index() || call.pads(); }

std::vector<char> moved_operands(const StepCall& call) {
  std::vector<char> moved(call.operands.size(), 0);
  if (call.kind == Kind::product || call.kind == Kind::rotation || reads_shared(call)) moved[0] = 1;
  if (call.kind != Kind::run || !has_rolls(call.calls)) return moved;
  // A roll shifts everything that its argument is computed from.
  for (std::size_t i = call.calls.size(); i-- > 0;) {
    const FusedCall& f = call.calls[i];
    const bool all = f.kind == FusedCall::Kind::roll || moved[f.out];
    for (int k = 0; k < 3; ++k) {
      if (f.in[k] >= 0 && all) moved[f.in[k]] = 1;
    }
  }
  return moved;
}

ReadPath read_path(const LoopValues& loop, std::size_t c, std::size_t operand, bool moved) {
  const StepCall& call = loop.calls[c];
  const Source& s = loop.source(c, operand);
  if (!s.made()) return ReadPath::memory;
  const LoopValue& v = loop.values[s.value];
  if (moved || s.offset != 0 || v.width != call.columns() || v.writers.size() > 1) return ReadPath::shared;
  const StepCall& maker = loop.maker(s.value);
  if (!call.operands[operand].plain() || maker.crosses()) return ReadPath::shared;
  return maker.kind == Kind::product ? ReadPath::tile : ReadPath::register_;
}

}  // namespace reel::cuda
