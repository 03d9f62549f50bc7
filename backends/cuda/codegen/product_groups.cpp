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

bool share_out(const StepCall& call, const BlockShare& share, ProductGroup& g) {
  const std::int64_t bytes = static_cast<std::int64_t>(size_of(call.operands[0].dtype)), v = 16 / bytes;
  const std::int64_t all = share.columns * static_cast<std::int64_t>(g.calls_per_factor());
  double best = 0;
  bool found = false;
  for (std::int64_t along = 1; along * g.factors <= (share.whole ? g.factors : product_warps); along *= 2) {
    const std::int64_t sets = product_warps / (along * g.factors);
    const std::int64_t columns = (all + sets - 1) / sets;
    const std::int64_t vectors = (call.sums + along * warp_lanes * v - 1) / (along * warp_lanes * v);
    if (columns > warp_lanes || 16 * columns * vectors > share.weights) continue;
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
    const double cost = std::max(multiply, others) + std::min(multiply, others) / 4;
    if (found && cost >= best) continue;
    found = true;
    g.cycles = best = cost;
    g.warps_along = static_cast<int>(along);
    g.columns = static_cast<int>(columns);
    g.vectors = static_cast<int>(vectors);
    g.rows = static_cast<int>(rows);
    g.pitch = along * warp_lanes * v * vectors;
  }
  return found;
}

}  // namespace reel::cuda
