#include "backends/cpu/kernels/bf16_weights.h"

#include <optional>
#include <set>
#include <utility>

namespace reel::cpu::bf16 {

namespace {

constexpr Prices prices;

bool is_worth_packing(const GemmArgs& g) {
  return g.m >= prices.rows && g.n >= prices.columns && g.k >= prices.terms && g.m * g.n * g.k >= prices.products;
}

/// By its right side alone, whatever number of rows a shard has.
bool is_worth_keeping(const GemmArgs& g) {
  return g.dtype == DType::f32 && !g.transpose_a && (g.batch == 1 || g.stride_b == 0) && g.n >= prices.columns &&
         g.k >= prices.terms && g.n * g.k >= prices.packed;
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
    if (!g || !long_enough || !is_worth_keeping(*g)) continue;
    const Operand& b = call.operands[1];
    if (!changing) changing = written(loop);
    if (b.stride == 0 && b.buffer >= 0 && !changing->contains(b.buffer))
      weights_.push_back({buffers[static_cast<std::size_t>(b.buffer)] + b.offset, g->k, g->n, g->transpose_b, {}});
  }
  outer_ = std::exchange(innermost, this);
}

LoopWeights::~LoopWeights() { innermost = outer_; }

const Packed* LoopWeights::find(Backend& cpu, const GemmArgs& g) {
  for (Weight& w : weights_) {
    if (w.data != g.b || w.k != g.k || w.n != g.n || w.transposed != g.transpose_b || !is_worth_keeping(g)) continue;
    if (w.packed.empty())
      w.packed.emplace_back(cpu, Matrix{static_cast<const float*>(g.b), g.transpose_b ? g.k : g.n, g.transpose_b}, g.k,
                            g.n);
    return w.packed.data();
  }
  return nullptr;
}

bool multiply(Backend& cpu, const GemmArgs& g) {
  const Packed* const packed = innermost ? innermost->find(cpu, g) : nullptr;
  if (!packed && (innermost || !is_worth_packing(g))) return false;
  cpu.parallel(static_cast<int>(g.batch), [&](int i) {
    const Matrix a{static_cast<const float*>(g.a) + i * g.stride_a, g.transpose_a ? g.m : g.k, g.transpose_a},
        b{static_cast<const float*>(g.b) + i * g.stride_b, g.transpose_b ? g.k : g.n, g.transpose_b};
    float* const c = static_cast<float*>(g.c) + i * g.m * g.n;
    if (packed)
      packed->multiply(cpu, a, g.m, c, false);
    else
      multiply(cpu, a, b, g.m, g.k, g.n, c);
  });
  return true;
}

}  // namespace reel::cpu::bf16
