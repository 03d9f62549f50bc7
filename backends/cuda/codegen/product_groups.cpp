#include "backends/cuda/codegen/product_groups.h"

#include <algorithm>

#include "backends/cuda/kernels/plan.h"

namespace reel::cuda {

std::vector<ProductGroup> regroup(const LoopValues& loop, const std::vector<ProductGroup>& found, Grouping how) {
  const auto first = [&](const ProductGroup& g) -> const StepCall& {
    return loop.calls[static_cast<std::size_t>(g.calls[0])];
  };
  std::vector<ProductGroup> out;
  for (const ProductGroup& g : found) {
    if (how == Grouping::apart) {
      for (const int c : g.calls) out.push_back({.calls = {c}});
      continue;
    }
    if (how == Grouping::halved && g.calls.size() > 1) {
      const auto half = g.calls.begin() + (std::ssize(g.calls) + 1) / 2;
      out.push_back({.calls = {g.calls.begin(), half}});
      out.push_back({.calls = {half, g.calls.end()}});
      continue;
    }
    const auto alike = std::find_if(out.begin(), out.end(), [&](const ProductGroup& o) {
      const StepCall &a = first(o), &b = first(g);
      return how == Grouping::merged && o.factors < product_warps && o.calls_per_factor() == g.calls.size() &&
             a.columns() == b.columns() && a.sums == b.sums && a.transposed == b.transposed &&
             a.operands[0].dtype == b.operands[0].dtype;
    });
    if (alike == out.end()) {
      out.push_back(g);
      continue;
    }
    alike->calls.insert(alike->calls.end(), g.calls.begin(), g.calls.end());
    ++alike->factors;
  }
  return out;
}

namespace {

/// The columns that each of so many sets of warps has.
std::int64_t columns_of_set(const BlockShare& share, const ProductGroup& g) {
  const std::int64_t sets = product_warps / (g.warps_along * g.factors),
                     all = share.columns * static_cast<std::int64_t>(g.calls_per_factor());
  return (all + sets - 1) / sets;
}

/// Multiply-adds of a warp's lanes: false if the weights do not fit, with so many warps along a sum.
bool fits_lanes(const StepCall& call, const BlockShare& share, ProductGroup& g) {
  const std::int64_t bytes = static_cast<std::int64_t>(size_of(call.operands[0].dtype)), v = 16 / bytes;
  const std::int64_t columns = columns_of_set(share, g), terms = g.warps_along * warp_lanes * v;
  const std::int64_t vectors = (call.sums + terms - 1) / terms;
  if (columns > warp_lanes || 16 * columns * vectors > share.weights) return false;
  std::int64_t rows = std::min<std::int64_t>(warp_lanes / power_of_two(columns, warp_lanes), 8);
  while (rows > 1 && rows / 2 >= share.rows) rows /= 2;
  const std::int64_t sums = power_of_two(columns * rows, warp_lanes);
  std::int64_t exchanges = sums - 1;  // then those of a single sum, at the remaining distances
  for (std::int64_t lanes = sums; lanes < warp_lanes; lanes *= 2) ++exchanges;
  const double warps = product_warps, f64 = bytes == 8 ? 2 : 1;
  const double read = static_cast<double>(vectors) * 4, weights = static_cast<double>(columns * vectors) * 4;
  // Of a row, by the SM: it has four units that multiply, and one that reads and exchanges.
  const double multiply = warps * f64 * static_cast<double>(columns * vectors * v) / 4;
  const double others =
      warps * (read + (static_cast<double>(exchanges) + (share.in_shared ? weights : 0)) / static_cast<double>(rows));
  g.cycles = std::max(multiply, others) + std::min(multiply, others) / 4;
  g.columns = static_cast<int>(columns);
  g.vectors = static_cast<int>(vectors);
  g.rows = static_cast<int>(rows);
  g.pitch = g.terms = terms * vectors;
  return true;
}

/// The same by tensor cores, which take f32 and have their weights in registers.
bool fits_tensor_cores(const StepCall& call, const BlockShare& share, ProductGroup& g) {
  if (call.operands[0].dtype != DType::f32 || share.in_shared) return false;
  constexpr std::int64_t rows = 16, columns_of_tile = 8;
  constexpr std::int64_t registers_for_sums = 16;                                   // besides those of weights
  const std::int64_t products = share.tensor_products, terms = g.warps_along * 16;  // two tiles of 8 a vector
  const std::int64_t tiles = (columns_of_set(share, g) + columns_of_tile - 1) / columns_of_tile,
                     vectors = (call.sums + terms - 1) / terms;
  const std::int64_t sums = tiles * 4 * std::max<std::int64_t>(1, 4 / tiles) * (products == 1 ? 1 : 2);
  if (16 * tiles * vectors > share.weights || 4 * tiles * vectors + sums > share.weights / 4 + registers_for_sums)
    return false;
  // Of 16 rows, by the SM, which has four units that multiply: a tile of 16 x 8 x 8 takes one of them 6.5 cycles. A
  // vector is split, or rounded, and read by each warp, and 18 instructions store a sum. The shares fit what an H100
  // needs (docs/gpu.md).
  const double warps = product_warps, steps = static_cast<double>(vectors), all_tiles = static_cast<double>(tiles);
  const double multiply = warps * steps * all_tiles * 2 * static_cast<double>(products) * 6.5 / 4,
               split = warps * steps * 8 * (products == 1 ? 1 : all_tiles + 2) / 4, read = warps * steps * 8,
               results = warps * all_tiles * 4 * 18 / 4;
  g.cycles = (products == 1 ? 0.8 : 0.95) * (multiply + split + read + results) / static_cast<double>(rows);
  g.columns = static_cast<int>(tiles * columns_of_tile);
  g.vectors = static_cast<int>(vectors);
  g.rows = rows;
  g.tensor_products = share.tensor_products;
  g.pitch = g.terms = terms * vectors;
  if (g.pitch % 32 == 0) g.pitch += 16;  // so that lanes that read together find other banks
  return true;
}

}  // namespace

bool share_out(const StepCall& call, const BlockShare& share, ProductGroup& g) {
  std::optional<ProductGroup> best;
  for (int along = 1; along * g.factors <= (share.whole ? g.factors : product_warps); along *= 2) {
    ProductGroup option = g;
    option.warps_along = along;
    if (!(share.tensor_products > 0 ? fits_tensor_cores : fits_lanes)(call, share, option)) continue;
    if (!best || option.cycles < best->cycles) best = std::move(option);
  }
  if (best) g = std::move(*best);
  return best.has_value();
}

}  // namespace reel::cuda
