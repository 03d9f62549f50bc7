// Which products are worth rounding to bf16.
#pragma once
#include "backends/cpu/kernels/bf16_products.h"

namespace reel::cpu::bf16 {

/// From which sizes on rounding to bf16 is faster than f32; bench/bench_costs.cpp measures them.
struct Prices {
  std::int64_t rows = 64, columns = 32, terms = 32;  // fewest of a product whose right side is packed for it alone
  std::int64_t products = std::int64_t{1} << 22;     // and fewest products of two numbers
  std::int64_t packed = std::int64_t{1} << 14;       // fewest elements of a loop's weight
};

/// Computes a product of f32; false: it is better left to f32. In a loop only weights are rounded, whatever number of
/// rows a shard has: the result must not depend on the number of shards.
bool multiply(Backend& cpu, const GemmArgs& product);

}  // namespace reel::cpu::bf16
