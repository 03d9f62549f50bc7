// LAPACK and CBLAS for any of the four element types. LAPACK is column-major and sees the transposes of our row-major
// matrices; the kernels are written so that this needs no copies.
#pragma once
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace reel::cpu {

/// Picks the one of four functions that handles elements of type T.
template <class T, class S, class D, class C, class Z>
constexpr auto fitting(S s, D d, C c, Z z) {
  if constexpr (std::is_same_v<T, float>)
    return s;
  else if constexpr (std::is_same_v<T, double>)
    return d;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return c;
  else
    return z;
}
#define REEL_LAPACK(name) fitting<T>(LAPACKE_s##name, LAPACKE_d##name, LAPACKE_c##name, LAPACKE_z##name)

/// The real type of T's absolute values: float for std::complex<float>.
template <class T>
using Real = decltype(std::abs(T()));

inline lapack_int narrow(std::int64_t n) { return static_cast<lapack_int>(n); }
inline std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

/// A column-major work matrix for LAPACK, with memory for one extra column: OpenBLAS 0.3.21's complex gemv reads its
/// vector, which may be the last row, one stride too far (OpenBLAS issue 4013).
template <class T>
std::vector<T> workspace(std::int64_t rows, std::int64_t columns) {
  return std::vector<T>(count(rows * (columns + 1)));
}
template <class T>
std::vector<T> workspace(std::int64_t rows, std::int64_t columns, const T* a) {
  std::vector<T> out = workspace<T>(rows, columns);
  std::copy_n(a, rows * columns, out.begin());
  return out;
}

/// c = op(a) op(b), column-major: [m, k] [k, n] -> [m, n].
template <class T>
void multiply(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
              std::int64_t lda, const T* b, std::int64_t ldb, T* c) {
  const auto gemm = fitting<T>(cblas_sgemm, cblas_dgemm, cblas_cgemm, cblas_zgemm);
  const T one(1), zero(0);
  const auto call = [&](auto alpha, auto beta) {
    gemm(CblasColMajor, ta, tb, narrow(m), narrow(n), narrow(k), alpha, a, narrow(lda), b, narrow(ldb), beta, c,
         narrow(m));
  };
  if constexpr (is_complex_type<T>)
    call(&one, &zero);
  else
    call(one, zero);
}

/// The largest absolute value of real and imaginary parts.
template <class T>
Real<T> largest_part(const T* x, std::int64_t n) {
  const auto* parts = reinterpret_cast<const Real<T>*>(x);
  Real<T> largest = 0;
  for (std::int64_t i = 0; i < (is_complex_type<T> ? 2 * n : n); ++i) largest = std::max(largest, std::abs(parts[i]));
  return largest;
}
/// The exponent of the power of two by which to divide elements, the largest of which is given: LAPACK's drivers scale
/// those from which its other routines underflow or overflow. No further than needed, so that small ones beside a large
/// one keep their digits. 0 for all others.
template <class R>
int extreme_exponent(R largest) {
  const R small = std::sqrt(std::numeric_limits<R>::min()) / std::numeric_limits<R>::epsilon();
  if (largest == 0) return 0;
  return std::ilogb(largest) - std::ilogb(std::clamp(largest, small, 1 / small));
}
/// x = 2^exponent x
template <class T>
void scale(std::vector<T>& x, int exponent) {
  if (exponent == 0) return;
  auto* parts = reinterpret_cast<Real<T>*>(x.data());
  for (std::size_t i = 0; i < (is_complex_type<T> ? 2 : 1) * x.size(); ++i) parts[i] = std::ldexp(parts[i], exponent);
}

/// Calls f with std::type_identity<T>, for dtypes with division (floating point and complex).
template <class F>
void on_field(DType dtype, F&& f) {
  dispatch(dtype, [&]<class T>(std::type_identity<T> type) {
    if constexpr (std::is_floating_point_v<T> || is_complex_type<T>)
      f(type);
    else
      rule_error("{} elements are not supported", name_of(dtype));
  });
}

/// "the 3x3 matrix", with its index in the batch if there are several.
inline std::string which(std::int64_t m, std::int64_t n, std::int64_t i, std::int64_t batch) {
  return fmt::format("the {}x{} matrix{}", m, n, batch == 1 ? "" : fmt::format(" at place {} of {}", i, batch));
}

template <class T>
bool all_finite(const T* x, std::int64_t n) {
  const auto* parts = reinterpret_cast<const Real<T>*>(x);
  const std::int64_t size = is_complex_type<T> ? 2 * n : n;
  bool finite = true;
  for (std::int64_t i = 0; i < size; ++i) finite &= parts[i] - parts[i] == 0;
  return finite;
}

/// Throws on NaN and infinity: LAPACK may never return from NaN.
template <class T>
void require_finite(const T* a, std::int64_t m, std::int64_t n, std::int64_t i, std::int64_t batch) {
  if (!all_finite(a, m * n)) rule_error("{} has elements that are not finite", which(m, n, i, batch));
}

/// Throws if a result computed from finite arguments is not finite.
template <class T>
void require_no_overflow(const T* x, std::int64_t size, const std::string& matrix) {
  if (!all_finite(x, size))
    rule_error("the result overflows: {} is nearly singular, or the numbers are too large", matrix);
}
/// Likewise for the m x n matrix at place i of a batch. Its text would take longer than to solve a small one.
template <class T>
void require_no_overflow(const T* x, std::int64_t size, std::int64_t m, std::int64_t n, std::int64_t i,
                         std::int64_t batch) {
  if (!all_finite(x, size)) require_no_overflow(x, size, which(m, n, i, batch));
}

/// Throws if LAPACK ran out of memory or refused an argument; the latter is our bug, not the user's.
inline void require_accepted(lapack_int info) {
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR) throw std::bad_alloc();
  if (info < 0) throw std::logic_error(fmt::format("reel: internal: LAPACK refuses argument {}", -info));
}

}  // namespace reel::cpu
