#include "backends/cuda/loop_kernel.h"

#include <algorithm>

namespace reel::cuda {

bool lay_out_loop(const FusedLoopArgs& args, LoopLayout& layout) {
  constexpr std::int64_t most = 1024, most_lanes = 4, usual = 128;  // threads of a block; columns of a thread
  const std::int64_t rows = args.run.rows, columns = args.run.columns, all = rows * columns;
  const bool rolls = has_rolls(args.run);
  const std::int64_t lanes = rolls ? (columns + most - 1) / most : 1;
  if (all == 0 || args.steps == 0 || all >= std::int64_t{1} << 31 || lanes > most_lanes) return false;
  layout.run = {rows, columns, 1, false, static_cast<int>(lanes)};
  layout.threads = static_cast<unsigned>(rolls ? (columns + lanes - 1) / lanes : usual);
  layout.blocks = static_cast<unsigned>(rolls ? rows : (all + usual - 1) / usual);
  return true;
}

bool is_carried(const FusedLoopArgs& args, std::size_t operand) {
  if (args.walks[operand].turns > 0) return true;
  return std::any_of(args.run.calls.begin(), args.run.calls.end(), [&](const FusedCall& c) {
    const FusedOperand& out = args.run.operands[static_cast<std::size_t>(c.out)];
    return !out.local && out.data == args.run.operands[operand].data;
  });
}

std::string loop_key(const FusedLoopArgs& args, const LoopLayout& layout) {
  std::string key = "loop" + fused_key(args.run, layout.run);
  key += args.reverse ? 'r' : 'f';
  for (std::size_t o = 0; o < args.walks.size(); ++o) {
    const LoopWalk& w = args.walks[o];
    key += static_cast<char>('0' + (w.stride != 0) + 2 * is_carried(args, o));
    if (w.turns > 0) key += static_cast<char>('a' + w.turns), key += static_cast<char>('a' + w.shift);
  }
  return key;
}

KernelSource loop_source(const FusedLoopArgs& args, const LoopLayout& layout, const std::string& name) {
  return fused_source(args.run, layout.run, name, &args);
}

std::vector<std::uint64_t> loop_arguments(const FusedLoopArgs& args, const LoopLayout& layout) {
  std::vector<std::uint64_t> out, strides;
  for (const std::int64_t n : {layout.run.rows, layout.run.columns, args.steps})
    out.push_back(static_cast<std::uint64_t>(n));
  for (std::size_t k = 0; k < args.walks.size(); ++k) {
    const FusedOperand& o = args.run.operands[k];
    if (o.local) continue;
    const LoopWalk& w = args.walks[k];
    const std::int64_t shift = w.turns > 0 ? 0 : w.shift * static_cast<std::int64_t>(w.stride);
    out.push_back(reinterpret_cast<std::uintptr_t>(o.data + shift));
    strides.push_back(w.stride / o.element_bytes);
  }
  out.insert(out.end(), strides.begin(), strides.end());
  put_numbers(args.run, out);
  return out;
}

}  // namespace reel::cuda
