// Which products are worth rounding to bf16, and the weights of a loop over time, which are packed once for all steps.
#pragma once
#include <span>
#include <vector>

#include "backends/cpu/kernels/bf16_products.h"
#include "engine/device/lowered_loop.h"

namespace reel::cpu::bf16 {

/// From which sizes on rounding to bf16 is faster than f32; bench/bench_costs.cpp measures them.
struct Prices {
  std::int64_t rows = 64, columns = 32, terms = 32;  // fewest of a product whose right side is packed for it alone
  std::int64_t products = std::int64_t{1} << 22;     // and fewest products of two numbers
  std::int64_t packed = std::int64_t{1} << 14;       // fewest elements of a loop's weight
};

/// Of the loop that the calling thread runs: the right sides of products that no step changes. Each is packed at its
/// first use. While it lives, the thread's products of other right sides stay f32: how many rows they have depends on
/// the number of shards, and the result must not.
class LoopWeights {
 public:
  LoopWeights(const Backend& cpu, const LoweredLoop& loop, std::span<std::byte* const> buffers);
  LoopWeights(const LoopWeights&) = delete;
  ~LoopWeights();
  /// The right side of this product; null: it is none of these.
  const Packed* find(Backend& cpu, const GemmArgs& product);

 private:
  struct Weight {
    const void* data;
    std::int64_t k, n;
    bool transposed;
    std::vector<Packed> packed;  // one, once it is used
  };
  std::vector<Weight> weights_;
  LoopWeights* outer_ = nullptr;
};

/// Computes a product of f32; false: it is better left to f32.
bool multiply(Backend& cpu, const GemmArgs& product);

}  // namespace reel::cpu::bf16
