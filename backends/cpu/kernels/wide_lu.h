// LU factorization and substitution in the widest type of the processor. LAPACK's do without it: they multiply by the
// inverses of pivots, which are infinite for subnormal ones, and their factors may overflow where the result does not.
// These divide, and nothing overflows on the way. They are slow, so they are only for what LAPACK does not give.
#pragma once
#include <complex>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/lapack_calls.h"

namespace reel::cpu {

template <class T>
using Wide = std::conditional_t<is_complex_type<T>, std::complex<long double>, long double>;

/// A row-major matrix [m, n], or the adjoint of a square one.
template <class T>
std::vector<Wide<T>> widened(std::int64_t m, std::int64_t n, const T* a, bool adjoint = false) {
  std::vector<Wide<T>> out(a, a + m * n);
  if (!adjoint) return out;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Wide<T>& x = out[count(i * n + j)];
      x = a[j * n + i];
      if constexpr (is_complex_type<T>) x = std::conj(x);
    }
  }
  return out;
}

/// x = t^-1 x in place, for a triangle t of a row-major matrix: [n, n], [n, k].
template <class W>
void substitute(bool upper, bool unit_diagonal, std::int64_t n, std::int64_t k, const std::vector<W>& t,
                std::vector<W>& x) {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = upper ? n - 1 - step : step, first = upper ? i + 1 : 0, last = upper ? n : i;
    for (std::int64_t c = 0; c < k; ++c) {
      W& y = x[count(i * k + c)];
      for (std::int64_t j = first; j < last; ++j) y -= t[count(i * n + j)] * x[count(j * k + c)];
      if (!unit_diagonal) y /= t[count(i * n + i)];
    }
  }
}

/// Row i of L U is row rows[i] of a matrix [m, n], by elimination with row pivots. A pivot may be 0.
template <class T>
struct WideLu {
  std::int64_t m, n;
  std::vector<Wide<T>> lu;  // row-major: U, and below its diagonal L without its own
  std::vector<std::int64_t> rows;
  bool odd = false;  // the permutation

  WideLu(std::int64_t height, std::int64_t width, const T* a, bool adjoint = false)
      : m(height), n(width), lu(widened(m, n, a, adjoint)), rows(count(m)) {
    std::iota(rows.begin(), rows.end(), 0);
    for (std::int64_t k = 0; k < std::min(m, n); ++k) {
      std::int64_t pivot = k;
      for (std::int64_t i = k + 1; i < m; ++i)
        if (std::abs(at(i, k)) > std::abs(at(pivot, k))) pivot = i;
      if (at(pivot, k) == Wide<T>(0)) continue;
      if (pivot != k) {
        std::swap_ranges(&at(k, 0), &at(k, 0) + n, &at(pivot, 0));
        std::swap(rows[count(k)], rows[count(pivot)]);
        odd = !odd;
      }
      for (std::int64_t i = k + 1; i < m; ++i) {
        const Wide<T> factor = at(i, k) /= at(k, k);
        if (factor == Wide<T>(0)) continue;
        for (std::int64_t j = k + 1; j < n; ++j) at(i, j) -= factor * at(k, j);
      }
    }
  }
  Wide<T>& at(std::int64_t i, std::int64_t j) { return lu[count(i * n + j)]; }
  const Wide<T>& at(std::int64_t i, std::int64_t j) const { return lu[count(i * n + j)]; }
};

template <class T>
void round_to(const std::vector<Wide<T>>& from, T* to) {
  for (const Wide<T>& x : from) *to++ = static_cast<T>(x);
}

}  // namespace reel::cpu
