// The layout of a reduction: which elements go to which result, and how threads share them.
#pragma once
#include "backends/cuda/kernels/plan.h"

namespace reel::cuda {

/// Result o < results reduces the elements in[kept(o) + reduced(r)], r < count, into out[kept(o)]. A block has `across`
/// results times `down` threads that share each result's elements; the elements are divided into `splits` parts for
/// different blocks.
struct ReducePlan {
  std::int64_t results = 1, count = 1;
  OffsetCalculator<2> kept;
  OffsetCalculator<1> reduced;
  int across = 1, down = 1;
  bool rows = true;  // adjacent threads take adjacent elements of one result, not adjacent results
  std::int64_t splits = 1, per_split = 1;
  std::int64_t stride = 0;  // between the elements of a result if it is constant, else 0

  /// Are the elements of a result contiguous, with adjacent threads on adjacent elements?
  bool in_rows() const { return rows && stride == 1; }
  /// Can `per` elements of a row be loaded as one, wherever a thread starts?
  template <class T>
  bool is_aligned(const T* in, int per) const {
    bool all = aligned(in, sizeof(T) * static_cast<std::size_t>(per)) && (splits == 1 || per_split % per == 0);
    for (int a = 0; a < kept.rank; ++a) all = all && kept.strides[a][0] % per == 0;
    return all;
  }
};

/// The axes of the results, and those along which elements are combined.
struct ReduceAxes {
  StridedLoop<2> kept{};
  StridedLoop<1> reduced{};
  bool inner_reduced = true;

  explicit ReduceAxes(const StridedLoop<2>& loop) {
    for (int i = 0; i < loop.rank; ++i) {
      const auto axis = static_cast<std::size_t>(i);
      inner_reduced = loop.strides[axis][1] == 0;
      if (inner_reduced)
        reduced.push(loop.dims[axis], {loop.strides[axis][0]});
      else
        kept.push(loop.dims[axis], loop.strides[axis]);
    }
  }
};

/// Results, and elements of each, must be fewer than most_elements (reduce_parts.h).
inline ReducePlan plan_reduction(const StridedLoop<2>& loop) {
  ReducePlan plan;
  const auto [kept, reduced, inner_reduced] = ReduceAxes(loop);
  plan.results = kept.numel();
  plan.count = reduced.numel();
  if (plan.results == 0 || plan.count == 0) return plan;
  plan.kept = OffsetCalculator<2>(kept);
  plan.reduced = OffsetCalculator<1>(reduced);
  plan.rows = inner_reduced;
  plan.stride = reduced.rank == 0 ? 1 : reduced.rank == 1 ? reduced.strides[0][0] : 0;
  if (plan.rows) {
    // One warp for each result if there are enough results to keep a large GPU busy, else one block; at least four
    // elements for each thread.
    constexpr std::int64_t enough = 2048;
    const bool many = plan.results >= enough;
    plan.down = power_of_two((plan.count + 3) / 4, many ? 32 : threads_per_block);
    plan.across = threads_per_block / plan.down;
  } else {
    plan.across = power_of_two(plan.results, 32);
    plan.down = threads_per_block / plan.across;
  }
  // Enough blocks to fill a large GPU. The number does not depend on the actual GPU, so that sums do not either.
  constexpr std::int64_t blocks = 512, least = 8;  // fewest elements per thread that pay for a second stage
  const std::int64_t groups = (plan.results + plan.across - 1) / plan.across,
                     most = (plan.count + plan.down * least - 1) / (plan.down * least);
  plan.splits = std::clamp<std::int64_t>(blocks / groups, 1, most);
  constexpr std::int64_t pack = 16;  // one-byte elements in one load
  plan.per_split = (plan.count + plan.splits - 1) / plan.splits;
  if (plan.splits > 1) plan.per_split = (plan.per_split + pack - 1) / pack * pack;
  plan.splits = (plan.count + plan.per_split - 1) / plan.per_split;
  return plan;
}

/// The second stage: reduces the `splits` adjacent partial results of each of `results`. `out` says where they go.
inline ReducePlan plan_second_stage(const ReducePlan& first) {
  ReducePlan plan;
  StridedLoop<1> reduced;
  reduced.push(first.splits, {1});
  plan.results = first.results;
  plan.count = first.splits;
  plan.kept = first.kept;
  plan.reduced = OffsetCalculator<1>(reduced);
  plan.stride = 1;
  plan.down = power_of_two(plan.count, threads_per_block);
  plan.across = threads_per_block / plan.down;
  plan.per_split = plan.count;
  return plan;
}

}  // namespace reel::cuda
