// How work is laid out over the threads of a GPU: plain functions of sizes, which need no GPU and are tested without.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/dtype.h"
#include "engine/loop.h"

namespace reel::cuda {

inline constexpr int threads_per_block = 256;
/// Elements that one launch walks through by 32-bit numbers; larger work is split.
inline constexpr std::int64_t most_elements = (std::int64_t{1} << 31) - 1;

/// Neighbours that are read and written as one.
template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};

/// Blocks for `work` threads; beyond the limit the threads of a launch go round more than once.
inline unsigned blocks_for(std::int64_t work, std::int64_t per_block = threads_per_block) {
  constexpr std::int64_t limit = 1 << 16;
  return static_cast<unsigned>(std::clamp<std::int64_t>((work + per_block - 1) / per_block, 1, limit));
}

/// Several arrays shared out to blocks: chunks of elements, numbered array after array.
struct Chunks {
  static constexpr int most = 48;  // arrays at a time: arguments of kernels have 4 KB
  static constexpr std::int64_t size = std::int64_t{4} * threads_per_block;
  int arrays = 0;
  std::int64_t n[most] = {};    // elements of each
  std::int64_t end[most] = {};  // behind the last chunk of each

  void push(std::int64_t elements) {
    n[arrays] = elements;
    end[arrays] = count() + (elements + size - 1) / size;
    ++arrays;
  }
  REEL_HD std::int64_t count() const { return arrays == 0 ? 0 : end[arrays - 1]; }
  /// The first chunk of an array.
  REEL_HD std::int64_t begin(int array) const { return array == 0 ? 0 : end[array - 1]; }
  /// The array that a chunk is of, the chunk's first element there, and the one behind its last.
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

/// Calls f with as many arrays at a time as a launch takes.
template <class T, class F>
void in_launches(std::span<const T> arrays, F f) {
  while (!arrays.empty()) {
    const auto some = arrays.first(std::min<std::size_t>(Chunks::most, arrays.size()));
    f(some);
    arrays = arrays.subspan(some.size());
  }
}

/// The smallest power of two that is not below n, at most `limit`, itself a power of two.
inline int power_of_two(std::int64_t n, int limit) {
  int p = 1;
  while (p < n && p < limit) p *= 2;
  return p;
}

/// Division by a number known before the launch, as a product: n / d for n < 2^31 (Granlund and Montgomery, 1994).
struct Divisor {
  std::uint32_t d = 1, magic = 1;
  int shift = 0;

  Divisor() = default;
  explicit Divisor(std::uint32_t divisor) : d(divisor) {
    while ((std::uint64_t{1} << shift) < d) ++shift;
    magic = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - d) << 32) / d + 1);
  }
  REEL_HD std::uint32_t divide(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(n) * magic >> 32);
    return (high + n) >> shift;
  }
};

/// A Loop as kernels take it: from the number of a place, in row-major order, to where the operands have it.
template <int N>
struct Walk {
  int rank = 0;
  Divisor dims[Shape::max_rank];
  std::int64_t strides[Shape::max_rank][N] = {};

  Walk() = default;
  explicit Walk(const Loop<N>& loop) : rank(loop.rank) {
    for (int a = 0; a < rank; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      dims[a] = Divisor(static_cast<std::uint32_t>(loop.dims[axis]));
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

/// Calls f(part, first) for parts of at most `limit` places that make up the loop, `first` being where the operands
/// have the first place of a part. A loop without places has no parts.
template <std::size_t N, class F>
void each_part(const Loop<N>& loop, F&& f, std::int64_t limit = most_elements,
               const typename Loop<N>::Offsets& first = {}) {
  const std::int64_t all = loop.numel();
  if (all == 0) return;
  if (all <= limit) return f(loop, first);
  const std::int64_t below = all / loop.dims[0], height = std::max<std::int64_t>(1, limit / below);
  for (std::int64_t i = 0; i < loop.dims[0]; i += height) {
    Loop<N> part = loop;
    part.dims[0] = std::min(height, loop.dims[0] - i);
    auto at = first;
    for (std::size_t k = 0; k < N; ++k) at[k] += i * loop.strides[0][k];
    if (below <= limit) {
      f(part, at);
    } else {  // one place of the outermost axis, which goes
      --part.rank;
      for (int a = 0; a < part.rank; ++a) {
        part.dims[static_cast<std::size_t>(a)] = loop.dims[static_cast<std::size_t>(a + 1)];
        part.strides[static_cast<std::size_t>(a)] = loop.strides[static_cast<std::size_t>(a + 1)];
      }
      each_part(part, f, limit, at);
    }
  }
}

/// The loop over packs of `per` neighbours along the innermost axis, if all operands have them whole: side by side or,
/// in those that `may_repeat`, all the same. The sizes and strides of what is returned count packs on that axis and
/// elements elsewhere. False: they do not.
template <std::size_t N>
bool in_packs(Loop<N>& loop, std::int64_t per, const bool (&may_repeat)[N]) {
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
