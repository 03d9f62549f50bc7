#include "backends/cpu/kernels/bf16_weights.h"

#include "backends/cpu/kernels/loop_weights.h"

namespace reel::cpu::bf16 {

namespace {

constexpr Prices prices;

bool is_worth_packing(const GemmArgs& g) {
  return g.m >= prices.rows && g.n >= prices.columns && g.k >= prices.terms && g.m * g.n * g.k >= prices.products;
}

/// By its right side alone, whatever number of rows a shard has.
bool is_worth_keeping(const GemmArgs& g) {
  return g.dtype == DType::f32 && g.n >= prices.columns && g.k >= prices.terms && g.n * g.k >= prices.packed;
}

}  // namespace

bool multiply(Backend& cpu, const GemmArgs& g) {
  const Packed* packed = nullptr;
  if (LoopWeights* const loop = LoopWeights::current()) {
    LoopWeights::Weight* const weight = is_worth_keeping(g) ? loop->find(g) : nullptr;
    if (!weight) return false;
    const Matrix b{static_cast<const float*>(g.b), g.transpose_b ? g.k : g.n, g.transpose_b};
    packed = &weight->as<Packed>([&] { return Packed(cpu, b, g.k, g.n); });
  } else if (!is_worth_packing(g)) {
    return false;
  }
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
