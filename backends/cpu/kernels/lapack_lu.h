// The LU factorization by LAPACK, and by division where LAPACK's overflows.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/kernels/lapack_calls.h"

namespace reel::cpu {

/// Gaussian elimination with partial pivoting, row-major, in place; `swaps` as LAPACK has them, from 1. Returns 1 + the
/// place of the first pivot that is 0, or 0.
template <class T>
lapack_int eliminate(std::int64_t m, std::int64_t n, T* a, lapack_int* swaps) {
  lapack_int zero = 0;
  const auto row = [&](std::int64_t i) { return a + i * n; };
  for (std::int64_t k = 0; k < std::min(m, n); ++k) {
    std::int64_t best = k;
    for (std::int64_t i = k + 1; i < m; ++i)
      if (std::abs(row(i)[k]) > std::abs(row(best)[k])) best = i;
    swaps[k] = narrow(best + 1);
    if (best != k) std::swap_ranges(row(k), row(k) + n, row(best));
    if (row(k)[k] == T(0)) {
      if (zero == 0) zero = narrow(k + 1);
      continue;
    }
    for (std::int64_t i = k + 1; i < m; ++i) {
      row(i)[k] /= row(k)[k];
      for (std::int64_t j = k + 1; j < n; ++j) row(i)[j] -= row(i)[k] * row(k)[j];
    }
  }
  return zero;
}

/// Factors [m, n] `a` of a layout into `lu` and `swaps`, and returns LAPACK's info. OpenBLAS multiplies by 1/pivot,
/// which is infinite for a subnormal pivot: such a matrix is eliminated by division, always as row-major.
template <class T>
lapack_int factor_lu(int layout, std::int64_t m, std::int64_t n, const T* a, T* lu, lapack_int* swaps) {
  std::copy_n(a, m * n, lu);
  const lapack_int info = REEL_LAPACK(getrf)(layout, narrow(m), narrow(n), lu, narrow(n), swaps);
  require_accepted(info);
  if (all_finite(lu, m * n)) return info;
  std::copy_n(a, m * n, lu);
  return eliminate(m, n, lu, swaps);
}

}  // namespace reel::cpu
