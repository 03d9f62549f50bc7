// How work is divided among the threads of a GPU: plain functions of sizes, tested without a GPU.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/core/dtype.h"
#include "engine/core/strided_loop.h"

namespace reel::cuda {

inline constexpr int threads_per_block = 256;
/// The most elements of one launch, for 32-bit indices; larger work is split.
inline constexpr std::int64_t most_elements = (std::int64_t{1} << 31) - 1;

/// Contiguous elements that are loaded and stored as one.
template <class T, int n>
struct alignas(sizeof(T) * n) AlignedVector {
  T at[n];
};

/// The number of blocks for `work` threads; beyond the limit, threads loop over the grid.
inline unsigned blocks_for(std::int64_t work, std::int64_t per_block = threads_per_block) {
  constexpr std::int64_t limit = 1 << 16;
  return static_cast<unsigned>(std::clamp<std::int64_t>((work + per_block - 1) / per_block, 1, limit));
}

/// Divides several arrays among blocks: chunks of elements, numbered array after array.
struct Chunks {
  static constexpr int most = 48;  // arrays at a time: kernel arguments are limited to 4 KB
  static constexpr std::int64_t size = std::int64_t{4} * threads_per_block;
  int arrays = 0;
  std::int64_t n[most] = {};    // elements of each
  std::int64_t end[most] = {};  // one past the last chunk of each

  void push(std::int64_t elements) {
    n[arrays] = elements;
    end[arrays] = count() + (elements + size - 1) / size;
    ++arrays;
  }
  REEL_HD std::int64_t count() const { return arrays == 0 ? 0 : end[arrays - 1]; }
  /// The first chunk of an array.
  REEL_HD std::int64_t begin(int array) const { return array == 0 ? 0 : end[array - 1]; }
  /// The array of a chunk; the index in it of the chunk's first element; one past its last.
  REEL_HD int array(std::int64_t chunk) const {
    int low = 0;
    for (int high = arrays - 1; low < high;) {
      const int middle = (low + high) / 2;
      if (chunk < end[middle])
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
  REEL_HD std::int64_t first(std::int64_t chunk, int array) const { return (chunk - begin(array)) * size; }
  REEL_HD std::int64_t last(std::int64_t chunk, int array) const {
    const std::int64_t full = first(chunk, array) + size;
    return full < n[array] ? full : n[array];
  }
};

/// Calls f with as many arrays at a time as fit in one launch.
template <class T, class F>
void in_launches(std::span<const T> arrays, F f) {
  while (!arrays.empty()) {
    const auto some = arrays.first(std::min<std::size_t>(Chunks::most, arrays.size()));
    f(some);
    arrays = arrays.subspan(some.size());
  }
}

/// The smallest power of two >= n, at most `limit`, which is a power of two too.
inline int power_of_two(std::int64_t n, int limit) {
  int p = 1;
  while (p < n && p < limit) p *= 2;
  return p;
}

/// Division by an invariant integer as a multiplication: n / d for n < 2^31 (Granlund and Montgomery, 1994).
struct FastDivmod {
  std::uint32_t d = 1, magic = 1;
  int shift = 0;

  FastDivmod() = default;
  explicit FastDivmod(std::uint32_t divisor) : d(divisor) {
    while ((std::uint64_t{1} << shift) < d) ++shift;
    magic = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - d) << 32) / d + 1);
  }
  REEL_HD std::uint32_t divide(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(n) * magic >> 32);
    return (high + n) >> shift;
  }
};

/// A StridedLoop in kernels: maps a row-major linear index to the operands' offsets.
template <int N>
struct OffsetCalculator {
  int rank = 0;
  FastDivmod dims[Shape::max_rank];
  std::int64_t strides[Shape::max_rank][N] = {};

  OffsetCalculator() = default;
  explicit OffsetCalculator(const StridedLoop<N>& loop) : rank(loop.rank) {
    for (int a = 0; a < rank; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      dims[a] = FastDivmod(static_cast<std::uint32_t>(loop.dims[axis]));
      for (int k = 0; k < N; ++k) strides[a][k] = loop.strides[axis][static_cast<std::size_t>(k)];
    }
  }
  REEL_HD void offsets(std::uint32_t place, std::int64_t (&at)[N]) const {
    for (int k = 0; k < N; ++k) at[k] = 0;
    for (int a = rank - 1; a >= 0; --a) {
      const std::uint32_t above = a > 0 ? dims[a].divide(place) : 0, here = place - above * dims[a].d;
      for (int k = 0; k < N; ++k) at[k] += here * strides[a][k];
      place = above;
    }
  }
};

/// Splits the loop into parts of at most `limit` indices and calls f(part, first), where `first` holds the operands'
/// offsets at the part's first index. An empty loop has no parts.
template <std::size_t N, class F>
void each_part(const StridedLoop<N>& loop, F&& f, std::int64_t limit = most_elements,
               const typename StridedLoop<N>::Offsets& first = {}) {
  const std::int64_t all = loop.numel();
  if (all == 0) return;
  if (all <= limit) return f(loop, first);
  const std::int64_t below = all / loop.dims[0], height = std::max<std::int64_t>(1, limit / below);
  for (std::int64_t i = 0; i < loop.dims[0]; i += height) {
    StridedLoop<N> part = loop;
    part.dims[0] = std::min(height, loop.dims[0] - i);
    auto at = first;
    for (std::size_t k = 0; k < N; ++k) at[k] += i * loop.strides[0][k];
    if (below <= limit) {
      f(part, at);
    } else {  // one index of the outermost axis, which is dropped
      --part.rank;
      for (int a = 0; a < part.rank; ++a) {
        part.dims[static_cast<std::size_t>(a)] = loop.dims[static_cast<std::size_t>(a + 1)];
        part.strides[static_cast<std::size_t>(a)] = loop.strides[static_cast<std::size_t>(a + 1)];
      }
      each_part(part, f, limit, at);
    }
  }
}

/// Turns the loop into one over vectors of `per` elements along the innermost axis. All operands must be contiguous
/// there or, where `may_repeat`, broadcast, and aligned in whole vectors. The returned sizes and strides count vectors
/// on that axis and elements elsewhere. Returns false if this is impossible.
template <std::size_t N>
bool vectorize(StridedLoop<N>& loop, std::int64_t per, const bool (&may_repeat)[N]) {
  if (loop.rank == 0 || per == 1) return per == 1;
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  if (loop.dims[last] % per != 0) return false;
  for (std::size_t k = 0; k < N; ++k) {
    const std::int64_t inner = loop.strides[last][k];
    if (inner == 0 && may_repeat[k]) continue;
    if (inner != 1) return false;
    for (std::size_t a = 0; a < last; ++a) {
      if (loop.strides[a][k] % per != 0) return false;
    }
  }
  loop.dims[last] /= per;
  for (std::size_t k = 0; k < N; ++k) loop.strides[last][k] *= per;
  return true;
}

inline bool aligned(const void* p, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; }

}  // namespace reel::cuda
