// Nested loops over N operands that share an iteration space: how broadcasting, transposing, slicing and reducing reach
// a backend. Axes that can be walked as one are merged, so most loops that arrive have one or two axes.
#pragma once
#include <array>
#include <cstdint>

#include "engine/shape.h"

namespace reel {

template <std::size_t N>
struct Loop {
  using Offsets = std::array<std::int64_t, N>;

  int rank = 0;
  std::array<std::int64_t, Shape::max_rank> dims;  // of the first `rank` axes, as strides; the rest is not set,
  std::array<Offsets, Shape::max_rank> strides;    // for small ops feel every byte. In elements; strides[axis][operand]

  /// Adds the next axis inwards; call from the outermost to the innermost.
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

  /// Calls f(offsets) for each run of the innermost axis, offsets being the operands' first elements of that run.
  template <class F>
  void for_each_run(F&& f) const {
    for (int i = 0; i < rank; ++i) {
      if (dims[static_cast<std::size_t>(i)] == 0) return;
    }
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

/// Stride of `shape` along axis `axis` of a broadcast result of rank `rank`: 0 where it is stretched or absent.
inline std::int64_t broadcast_stride(const Shape& shape, const std::array<std::int64_t, Shape::max_rank>& strides,
                                     int axis, int rank) {
  const int own = axis - (rank - shape.rank());
  return own < 0 || shape[own] == 1 ? 0 : strides[static_cast<std::size_t>(own)];
}

}  // namespace reel
