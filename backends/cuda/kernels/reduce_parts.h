// Reductions with more results, or more elements of a result, than a kernel's 32-bit indices reach: in parts.
#pragma once
#include "backends/cuda/kernels/reduce_plan.h"
#include "engine/device/kernels.h"

namespace reel::cuda {

inline StridedLoop<2> loop_of(const StridedLoop<2>& kept, const StridedLoop<1>& reduced, bool inner_reduced) {
  StridedLoop<2> out{};
  const auto push_kept = [&] {
    for (std::size_t i = 0; i < static_cast<std::size_t>(kept.rank); ++i) out.push(kept.dims[i], kept.strides[i]);
  };
  if (inner_reduced) push_kept();
  for (std::size_t i = 0; i < static_cast<std::size_t>(reduced.rank); ++i)
    out.push(reduced.dims[i], {reduced.strides[i][0], 0});
  if (!inner_reduced) push_kept();
  return out;
}

/// Calls reduce(args) for parts with at most `limit` results, of at most `limit` elements each. Where a result has
/// elements in several parts, those of each part are reduced into room(bytes), which is then reduced itself. False,
/// without a call, if it is one part.
template <class Room, class Reduce>
bool reduce_in_parts(const ReduceArgs& a, Room&& room, Reduce&& reduce, std::int64_t limit = most_elements - 1) {
  const ReduceAxes axes(a.loop);
  if (axes.kept.numel() <= limit && axes.reduced.numel() <= limit) return false;
  const auto size = static_cast<std::int64_t>(size_of(a.dtype));
  const auto* const in = static_cast<const std::byte*>(a.in);
  if (axes.reduced.numel() <= limit) {
    const auto some = [&](const StridedLoop<2>& kept, const StridedLoop<2>::Offsets& first) {
      reduce(ReduceArgs{a.kind, a.dtype, loop_of(kept, axes.reduced, axes.inner_reduced), kept.numel(),
                        in + first[0] * size, static_cast<std::byte*>(a.out) + first[1] * size});
    };
    each_part(axes.kept, some, limit);
    return true;
  }
  std::int64_t parts = 0, next = 0;
  const auto count = [&](const auto&, const auto&) { ++parts; };
  each_part(axes.reduced, count, limit);
  const auto partial = room(static_cast<std::size_t>(parts * a.out_numel * size));
  const auto some = [&](const StridedLoop<1>& reduced, const StridedLoop<1>::Offsets& first) {
    reduce(ReduceArgs{a.kind, a.dtype, loop_of(axes.kept, reduced, axes.inner_reduced), a.out_numel,
                      in + first[0] * size, partial->data + next++ * a.out_numel * size});
  };
  each_part(axes.reduced, some, limit);
  StridedLoop<2> rest{};
  rest.push(parts, {a.out_numel, 0});
  rest.push(a.out_numel, {1, 1});
  reduce(ReduceArgs{a.kind, a.dtype, rest, a.out_numel, partial->data, a.out});
  return true;
}

}  // namespace reel::cuda
