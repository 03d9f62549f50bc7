// Sums of rows, and of products of rows. Each element is added in the order of the rows, so that one row at a time
// gives the same bits as all at once.
#pragma once
#include "backends/cpu/simd/vectors.h"

namespace reel::cpu {

/// sum + x y, or sum + x.
template <bool product, class V>
V added(V sum, V x, V y) {
  if constexpr (product)
    return times_plus(x, y, sum);
  else
    return sum + x;
}

/// Adds one row of n numbers to `out`.
template <bool product, class T>
void add_row(std::int64_t n, const T* x, const T* y, T* out) {
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    const Vector<T> a = load(x + j), b = product ? load(y + j) : a;
    store(out + j, added<product>(load(out + j), a, b));
  }
  for (; j < n; ++j) out[j] = added<product>(out[j], x[j], product ? y[j] : x[j]);
}

/// Adds rows of n numbers to `out`, which stays in registers: a few vectors of it at a time.
template <bool product, class T>
void add_rows(std::int64_t rows, std::int64_t n, const T* x, const T* y, T* out) {
  constexpr std::int64_t together = 4, width = together * lanes<T>;
  std::int64_t j = 0;
  for (; j + width <= n; j += width) {
    Vector<T> sum[together];
    for (std::int64_t k = 0; k < together; ++k) sum[k] = load(out + j + k * lanes<T>);
    for (std::int64_t at = j; at < rows * n; at += n) {
      for (std::int64_t k = 0; k < together; ++k) {
        const Vector<T> a = load(x + at + k * lanes<T>), b = product ? load(y + at + k * lanes<T>) : a;
        sum[k] = added<product>(sum[k], a, b);
      }
    }
    for (std::int64_t k = 0; k < together; ++k) store(out + j + k * lanes<T>, sum[k]);
  }
  for (std::int64_t r = 0; r < rows; ++r) add_row<product>(n - j, x + r * n + j, product ? y + r * n + j : y, out + j);
}

}  // namespace reel::cpu
