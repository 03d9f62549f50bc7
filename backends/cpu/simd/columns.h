// Rows too short to fill vectors: the lanes of a vector are rows instead.
#pragma once
#include <algorithm>

#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/vectors.h"

namespace reel::cpu {

/// Transposes the square of `lanes` vectors: in each round, squares of the lanes beside each other change places.
template <class T, std::int64_t distance = lanes<T> / 2>
inline void transpose(Vector<T>* v) {
  if constexpr (distance > 0) {
    for (std::int64_t i = 0; i < lanes<T>; ++i) {
      if (i & distance) continue;
      const Vector<T> a = v[i], b = v[i + distance];
      v[i] = shuffled<T, [](std::int64_t k) { return k & distance ? lanes<T> + k - distance : k; }>(a, b);
      v[i + distance] = shuffled<T, [](std::int64_t k) { return k & distance ? lanes<T> + k : k + distance; }>(a, b);
    }
    transpose<T, distance / 2>(v);
  }
}

/// The first n elements at x, at most as many as a vector has lanes.
template <class T>
inline Vector<T> load_columns(const T* x, std::int64_t n) {
  const xsimd::batch<T> loaded = load_first(x, n);
  return load(reinterpret_cast<const T*>(&loaded));
}
template <class T>
inline void store_columns(const Vector<T>& columns, T* out, std::int64_t n) {
  store_first(xsimd::batch<T>::load_unaligned(reinterpret_cast<const T*>(&columns)), out, n);
}

/// The elements of rows of n that are transposed in vectors: without masks, what fills none is copied one by one.
template <class T>
constexpr std::int64_t in_vectors(std::int64_t n) {
  return has_masks ? n : n / lanes<T> * lanes<T>;
}

/// Calls f(columns, first, some) for rows of n <= longest elements, where columns[j * lanes + k] is element j of row
/// first + k, for k < some.
template <std::int64_t longest, class T, class F>
void each_columns(const T* x, std::int64_t rows, std::int64_t n, F&& f) {
  constexpr std::int64_t width = lanes<T>;
  static_assert(longest % width == 0 && xsimd::batch<T>::size == width);
  const std::int64_t whole = in_vectors<T>(n);
  alignas(64) T columns[longest * width] = {};
  for (std::int64_t r = 0; r < rows; r += width, x += width * n) {
    const std::int64_t some = std::min(width, rows - r);
    for (std::int64_t j = 0; j < whole; j += width) {
      Vector<T> v[width];
      for (std::int64_t k = 0; k < width; ++k)  // the last row fills the lanes that no row is left for
        v[k] = load_columns(x + std::min(k, some - 1) * n + j, std::min(width, n - j));
      transpose<T>(v);
      for (std::int64_t k = 0; k < width; ++k) store(columns + (j + k) * width, v[k]);
    }
    for (std::int64_t k = 0; k < some; ++k) {
      for (std::int64_t j = whole; j < n; ++j) columns[j * width + k] = x[k * n + j];
    }
    f(columns, r, some);
  }
}

/// Likewise; out gets what f makes of the columns.
template <std::int64_t longest, class T, class F>
void by_columns(const T* x, std::int64_t rows, std::int64_t n, T* out, F&& f) {
  constexpr std::int64_t width = lanes<T>;
  const std::int64_t whole = in_vectors<T>(n);
  each_columns<longest>(x, rows, n, [&](T* columns, std::int64_t first, std::int64_t some) {
    f(columns, first, some);
    for (std::int64_t j = 0; j < whole; j += width) {
      Vector<T> v[width];
      for (std::int64_t k = 0; k < width; ++k) v[k] = load(columns + (j + k) * width);
      transpose<T>(v);
      for (std::int64_t k = 0; k < some; ++k) store_columns<T>(v[k], out + (first + k) * n + j, std::min(width, n - j));
    }
    for (std::int64_t k = 0; k < some; ++k) {
      for (std::int64_t j = whole; j < n; ++j) out[(first + k) * n + j] = columns[j * width + k];
    }
  });
}

}  // namespace reel::cpu
