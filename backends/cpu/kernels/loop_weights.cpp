#include "backends/cpu/kernels/loop_weights.h"

#include <optional>
#include <set>
#include <utility>

namespace reel::cpu {

namespace {

bool has_shared_right_side(const GemmArgs& g) {
  return is_floating(g.dtype) && !g.transpose_a && (g.batch == 1 || g.stride_b == 0) &&
         g.k * g.n * static_cast<std::int64_t>(size_of(g.dtype)) >= LoopWeights::smallest;
}

/// The buffers that a step of the loop writes to.
std::set<int> written(const LoweredLoop& loop) {
  std::set<int> buffers;
  for (LoopCall call : loop.calls) {
    auto operand = call.operands.begin();
    call.kernel.arrays([&](auto*& pointer) {
      if constexpr (!std::is_const_v<std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>>)
        buffers.insert(operand->buffer);
      ++operand;
    });
  }
  return buffers;
}

thread_local LoopWeights* innermost = nullptr;  // loop of this thread

}  // namespace

LoopWeights::LoopWeights(const Backend& cpu, const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  const bool long_enough = loop.steps >= cpu.costs().steps_to_prepack;
  std::optional<std::set<int>> changing;
  for (const LoopCall& call : loop.calls) {
    const GemmArgs* g = call.kernel.as<Kernel::gemm>();
    if (!g || !long_enough || !has_shared_right_side(*g)) continue;
    const Operand& b = call.operands[1];
    if (!changing) changing = written(loop);
    if (b.stride == 0 && b.buffer >= 0 && !changing->contains(b.buffer))
      weights_.push_back({buffers[static_cast<std::size_t>(b.buffer)] + b.offset, g->dtype, g->k, g->n, g->transpose_b,
                          loop.steps * g->batch * g->m, nullptr});
  }
  outer_ = std::exchange(innermost, this);
}

LoopWeights::~LoopWeights() { innermost = outer_; }

LoopWeights* LoopWeights::current() { return innermost; }

LoopWeights::Weight* LoopWeights::find(const GemmArgs& g) {
  if (!has_shared_right_side(g)) return nullptr;
  for (Weight& w : weights_) {
    if (w.data == g.b && w.dtype == g.dtype && w.k == g.k && w.n == g.n && w.transposed == g.transpose_b) return &w;
  }
  return nullptr;
}

}  // namespace reel::cpu
