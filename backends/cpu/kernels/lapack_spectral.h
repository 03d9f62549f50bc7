// What LAPACK's routines for eigenvalues and singular values share: copies, rounding, and how they fail.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/kernels/lapack_calls.h"

namespace reel::cpu {

template <class T>
using Complex = std::complex<Real<T>>;

template <class T>
constexpr Real<T> epsilon = std::numeric_limits<Real<T>>::epsilon();
/// The relative difference below which numbers are equal up to rounding, for matrices [n, n].
template <class T>
Real<T> rounding(std::int64_t n) {
  return static_cast<Real<T>>(10 * n) * epsilon<T>;
}

/// Is |v^H u| of an eigenvalue's unit vectors so small that it counts as defective?
template <class T>
bool is_defective(Complex<T> product) {
  return !(std::abs(product) > 10 * std::sqrt(epsilon<T>));  // so does NaN
}

inline constexpr int layout = LAPACK_ROW_MAJOR;

/// A copy of the elements of one matrix or vector, and an empty buffer for as many.
template <class T>
std::vector<T> copy_of(const T* a, std::int64_t count) {
  return {a, a + count};
}
template <class T>
std::vector<T> room(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count));
}

/// Throws if an element is not finite: LAPACK would return garbage, or never return.
template <class T>
void check_finite(const void* matrices, std::int64_t batch, std::int64_t m, std::int64_t n) {
  const T* a = static_cast<const T*>(matrices);
  for (std::int64_t i = 0; i < batch * m * n; ++i) {
    const Complex<T> x(a[i]);
    if (std::isfinite(x.real()) && std::isfinite(x.imag())) continue;
    rule_error("all elements must be finite: ({}, {}) of matrix {} is {}{}", i / n % m, i % n, i / (m * n), x.real(),
               is_complex_type<T> ? fmt::format("{:+}i", x.imag()) : "");
  }
}

/// Throws if what was computed of a finite matrix is not finite.
template <class T>
void check_overflow(const T* x, std::int64_t size, const char* what, std::int64_t m, std::int64_t n) {
  if (!all_finite(x, size))
    rule_error("{} of a matrix ({}, {}) overflow: its elements are too large. Hint: scale the matrix down", what, m, n);
}

inline void check_info(lapack_int info, const char* routine, std::int64_t m, std::int64_t n) {
  if (info > 0) rule_error("LAPACK's {} did not converge on a matrix ({}, {})", routine, m, n);
  if (info < 0) rule_error("LAPACK's {} failed with info {} on a matrix ({}, {})", routine, info, m, n);
}

}  // namespace reel::cpu
