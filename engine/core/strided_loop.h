// Nested loops over N strided operands with one iteration space. Ops pass them to a backend to broadcast, transpose,
// slice and reduce. Adjacent axes are merged where the strides allow it, so most loops have one or two axes.
#pragma once
#include <array>
#include <cstdint>

#include "engine/core/shape.h"

namespace reel {

template <std::size_t N>
struct StridedLoop {
  using Offsets = std::array<std::int64_t, N>;

  int rank = 0;
  std::array<std::int64_t, Shape::max_rank> dims;  // only the first `rank` axes are set: clearing the others would
  std::array<Offsets, Shape::max_rank> strides;    // slow down small ops; strides[axis][operand] is in elements

  /// Appends an axis. Call it from the outermost to the innermost axis.
  void push(std::int64_t dim, const Offsets& stride) {
    if (dim == 1) return;
    if (rank > 0) {
      const auto outer = static_cast<std::size_t>(rank - 1);
      bool merge = true;
      for (std::size_t k = 0; k < N; ++k) merge = merge && strides[outer][k] == stride[k] * dim;
      if (merge) {
        dims[outer] *= dim;
        strides[outer] = stride;
        return;
      }
    }
    dims[static_cast<std::size_t>(rank)] = dim;
    strides[static_cast<std::size_t>(rank)] = stride;
    ++rank;
  }

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[static_cast<std::size_t>(i)];
    return n;
  }
  std::int64_t inner_dim() const { return rank == 0 ? 1 : dims[static_cast<std::size_t>(rank - 1)]; }
  Offsets inner_stride() const { return rank == 0 ? Offsets{} : strides[static_cast<std::size_t>(rank - 1)]; }

  /// Calls f(offsets) for each run of the innermost axis, with the operands' offsets at the start of that run.
  template <class F>
  void for_each_run(F&& f) const {
    if (numel() == 0) return;
    Offsets at{};
    if (rank <= 1) return f(static_cast<const Offsets&>(at));
    const auto last = static_cast<std::size_t>(rank - 2);
    std::array<std::int64_t, Shape::max_rank> index{};
    while (true) {
      Offsets run = at;
      for (std::int64_t i = 0; i < dims[last]; ++i) {
        f(static_cast<const Offsets&>(run));
        for (std::size_t k = 0; k < N; ++k) run[k] += strides[last][k];
      }
      int axis = rank - 3;
      for (; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        for (std::size_t k = 0; k < N; ++k) at[k] += strides[a][k];
        if (++index[a] < dims[a]) break;
        for (std::size_t k = 0; k < N; ++k) at[k] -= strides[a][k] * dims[a];
        index[a] = 0;
      }
      if (axis < 0) return;
    }
  }
};

/// Row-major strides of a shape, in elements.
inline std::array<std::int64_t, Shape::max_rank> strides_of(const Shape& shape) {
  std::array<std::int64_t, Shape::max_rank> strides{};
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

/// Stride of `shape` along `axis` of a broadcast result of rank `rank`: 0 where the axis is broadcast or missing.
inline std::int64_t broadcast_stride(const Shape& shape, const std::array<std::int64_t, Shape::max_rank>& strides,
                                     int axis, int rank) {
  const int own = axis - (rank - shape.rank());
  return own < 0 || shape[own] == 1 ? 0 : strides[static_cast<std::size_t>(own)];
}

}  // namespace reel
