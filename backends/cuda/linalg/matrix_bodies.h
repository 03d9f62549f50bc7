// The bodies of the small kernels around cuSOLVER's calls: each does the work of index i, so that a launch, or on the
// host a loop, covers all i. "Packed" matrices are column-major, as the libraries leave them; all others are row-major.
#pragma once
#include <limits>

#include "backends/cuda/kernels/complex.h"
#include "backends/cuda/runtime/faults.h"
// Included after the complex type, so that the functors' math finds that type's functions.
#include "backends/shared/gauge.h"

namespace reel::cuda {

template <class T>
using Real = decltype(absolute(T()));

template <class R>
REEL_HD bool is_finite(R x) {
  return x - x == R(0);
}
template <class T>
REEL_HD bool all_parts_finite(T z) {
  if constexpr (is_complex_type<T>)
    return is_finite(z.real()) && is_finite(z.imag());
  else
    return is_finite(z);
}

/// *flag = 1 if an element is not finite.
template <class R>
struct FindNotFinite {
  const R* x;
  int* flag;
  REEL_HD void operator()(std::int64_t i) const {
    if (!is_finite(x[i])) *flag = 1;  // a benign race: all writers write the same value
  }
};

/// The same for one triangle, with or without its diagonal: element i of matrices `stride` elements apart.
template <class T>
struct FindInTriangle {
  std::int64_t n, stride;
  bool upper, diagonal;
  const T* a;
  int* flag;
  REEL_HD void operator()(std::int64_t i) const {
    const std::int64_t matrix = i / (n * n), at = i - matrix * n * n, row = at / n, column = at - row * n;
    const bool inside = row == column ? diagonal : upper == (column > row);
    if (inside && !all_parts_finite(a[matrix * stride + at])) *flag = 1;
  }
};

/// *flag = 1 if a diagonal element of matrix i is 0, or at most `tolerance` times the largest.
template <class T>
struct FindSmallDiagonal {
  std::int64_t n, stride;
  double tolerance;
  const T* a;
  int* flag;
  REEL_HD void operator()(std::int64_t i) const {
    Real<T> most = 0, least = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const Real<T> d = absolute(a[i * stride + j * (n + 1)]);
      most = j == 0 || d > most ? d : most;
      least = j == 0 || d < least ? d : least;
    }
    if (least == 0 || least <= static_cast<Real<T>>(tolerance) * most) *flag = 1;
  }
};

/// Records a fault if number i is not 0.
struct Note {
  const int* numbers;
  FaultSlot* fault;
  REEL_HD void operator()(std::int64_t i) const {
    if (numbers[i] != 0) *fault = 0;
  }
};

/// Zeroes what is above the diagonal of matrices [n, n].
template <class T>
struct KeepLower {
  std::int64_t n;
  T* x;
  REEL_HD void operator()(std::int64_t i) const {
    if (i % n > i / n % n) x[i] = T(0);
  }
};

/// Column i of the permutation matrix of getrf's swaps (1-based): row i of the factors is the row of the matrix that
/// the swaps moved there.
template <class T>
struct Permutation {
  std::int64_t m, swaps;
  const std::int64_t* swap;
  T* p;  // [m, m]
  REEL_HD void operator()(std::int64_t i) const {
    std::int64_t row = i;  // traced back from the last swap to the first
    for (std::int64_t s = swaps - 1; s >= 0; --s) {
      const std::int64_t other = swap[s] - 1;
      row = row == s ? other : row == other ? s : row;
    }
    for (std::int64_t q = 0; q < m; ++q) p[q * m + i] = T(Real<T>(q == row));
  }
};

/// Copies element i of a packed factorization [m, n] to l [m, r] or u [r, n].
template <class T>
struct SplitFactors {
  std::int64_t m, n, r;
  const T* packed;
  T *l, *u;
  REEL_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i / n, column = i - row * n;
    const T x = packed[column * m + row];
    if (column < r) l[row * r + column] = row > column ? x : T(Real<T>(row == column));
    if (row < r) u[row * n + column] = row <= column ? x : T(0);
  }
};

/// The determinant of matrix i from its packed factors [n, n] and their swaps. Null outputs are skipped; *flag = 1 if
/// the determinant overflows.
template <class T>
struct Determinant {
  std::int64_t n;
  const T* packed;
  const std::int64_t* swap;
  T *det, *sign;
  Real<T>* log_abs;
  int* flag;
  REEL_HD void operator()(std::int64_t i) const {
    double re = 1, im = 0, sign_re = 1, sign_im = 0,
           log_size = 0;  // (re + i im) 2^exponent, so that it never overflows
    int exponent = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const T d = packed[i * n * n + j * (n + 1)];
      double x, y = 0;
      if constexpr (is_complex_type<T>)
        x = d.real(), y = d.imag();
      else
        x = d;
      if (swap[i * n + j] != j + 1) x = -x, y = -y;
      const double size = ::hypot(x, y);
      log_size += ::log(size);
      multiply(sign_re, sign_im, size == 0 ? 0 : x / size, size == 0 ? 0 : y / size);
      multiply(re, im, x, y);
      const double now = ::hypot(re, im);
      if (now == 0 || !is_finite(now)) continue;
      const int e = ::ilogb(now);
      exponent += e;
      re = ::scalbn(re, -e);
      im = ::scalbn(im, -e);
    }
    if (det) {
      det[i] = number(::scalbn(re, exponent), ::scalbn(im, exponent));
      if (!all_parts_finite(det[i])) *flag = 1;
    }
    if (sign) sign[i] = number(sign_re, sign_im);
    if (log_abs) {
      log_abs[i] = static_cast<Real<T>>(log_size);
      if (!is_finite(log_size) && !(log_size < 0)) *flag = 1;  // -infinity is that of a singular matrix
    }
  }
  REEL_HD static void multiply(double& re, double& im, double x, double y) {
    const double was = re;
    re = was * x - im * y;
    im = was * y + im * x;
  }
  REEL_HD static T number(double re, [[maybe_unused]] double im) {
    if constexpr (is_complex_type<T>)
      return T(static_cast<Real<T>>(re), static_cast<Real<T>>(im));
    else
      return static_cast<T>(re);
  }
};

/// Element i of r [k, n] from geqrf's packed [m, n], with rows scaled by a phase so that the diagonal is real and
/// non-negative.
template <class T>
struct TakeR {
  std::int64_t m, n;
  const T* packed;
  T *r, *phase;  // phase [k]: factors for the columns of q
  REEL_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i / n, column = i - row * n;
    const T d = packed[row * m + row], turned = phase_of(d);
    r[i] = column < row    ? T(0)
           : column == row ? T(absolute(d))
                           : math::times(packed[column * m + row], conjugate(turned));
    if (column == row) phase[row] = turned;
  }
};

/// Element i of q [m, k] from orgqr's packed [m, k].
template <class T>
struct TakeQ {
  std::int64_t m, k;
  const T *packed, *phase;
  T* q;
  REEL_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i / k, column = i - row * k;
    q[i] = math::times(packed[column * m + row], phase[column]);
  }
};

/// Copies vector i of syevd's packed [n, n], which is of the conjugate matrix, to column i of vectors.
template <class T>
struct TakeHermitianVectors {
  std::int64_t n;
  const T* packed;
  T* vectors;
  std::int32_t* largest;
  REEL_HD void operator()(std::int64_t i) const {
    for (std::int64_t j = 0; j < n; ++j) vectors[j * n + i] = conjugate(packed[i * n + j]);
    fix_gauge(vectors + i, n, n, largest + i);
  }
};

/// Fixes the phase of column i of u [m, k], and applies the inverse phase to row i of vh [k, n].
template <class T>
struct TurnSingular {
  std::int64_t m, n, k;
  T *u, *vh;
  std::int32_t* largest;
  REEL_HD void operator()(std::int64_t i) const {
    const T was = fix_gauge(u + i, m, k, largest + i);
    for (std::int64_t j = 0; j < n; ++j) vh[i * n + j] = math::times(vh[i * n + j], was);
  }
};

/// Eigenvalue i and its eigenvector, normalized, as column i of vectors, from geev's packed [n, n]. For a real matrix,
/// two columns hold the real and imaginary parts of a conjugate pair's vector; the eigenvalue with positive imaginary
/// part comes first.
template <class T, class C>
struct TakeEigenvectors {
  std::int64_t n;
  const C* from;
  const T* packed;
  C *values, *vectors;
  std::int32_t* largest;
  REEL_HD void operator()(std::int64_t i) const {
    using R = Real<T>;
    const R side = from[i].imag();
    const bool first = side > 0 && i + 1 < n, second = side < 0 && i > 0;  // of a conjugate pair
    if constexpr (is_complex_type<T>) {
      values[i] = from[i];
      for (std::int64_t j = 0; j < n; ++j) vectors[j * n + i] = packed[i * n + j];
    } else {
      values[i] = second ? conjugate(from[i - 1]) : from[i];
      const T* const re = packed + (second ? i - 1 : i) * n;
      const R sign = first ? R(1) : second ? R(-1) : R(0);
      for (std::int64_t j = 0; j < n; ++j) vectors[j * n + i] = C(re[j], sign == 0 ? R(0) : sign * re[n + j]);
    }
    double square = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double x = vectors[j * n + i].real(), y = vectors[j * n + i].imag();
      square += x * x + y * y;
    }
    const R scale = static_cast<R>(1 / std::sqrt(square));
    for (std::int64_t j = 0; j < n; ++j)
      vectors[j * n + i] = C(vectors[j * n + i].real() * scale, vectors[j * n + i].imag() * scale);
    fix_gauge(vectors + i, n, n, largest + i);
  }
};

/// The sum of the moduli of column i of x [n, n].
template <class T>
struct ColumnSum {
  std::int64_t n;
  const T* x;
  double* sum;
  REEL_HD void operator()(std::int64_t i) const {
    double s = 0;
    for (std::int64_t j = 0; j < n; ++j) s += absolute(x[j * n + i]);
    sum[i] = s;
  }
};

/// *independent: is the condition number, max of `first` [n] times max of `second` [n], below `limit`?
struct CompareCondition {
  std::int64_t n;
  double limit;
  const double *first, *second;
  bool* independent;
  REEL_HD void operator()(std::int64_t) const {
    double a = 0, b = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      a = first[j] > a ? first[j] : a;
      b = second[j] > b || second[j] != second[j] ? second[j] : b;  // NaN propagates
    }
    *independent = a * b < limit;
  }
};

/// Multiplies row i of matrices vh [k, n] by 1 / s[i], or by 0 if s[i] is at most `rcond` times the largest; s [k]
/// descends.
template <class T>
struct InvertSingular {
  std::int64_t k, n;
  double rcond;
  const Real<T>* s;
  T* vh;
  REEL_HD void operator()(std::int64_t i) const {
    const Real<T> limit = static_cast<Real<T>>(rcond) * s[i - i % k];
    const T factor = T(s[i] <= limit ? Real<T>(0) : 1 / s[i]);
    for (std::int64_t j = 0; j < n; ++j) vh[i * n + j] = math::times(vh[i * n + j], factor);
  }
};

/// *flag = 1 if the last singular value of matrix i is at most `part` times the first.
template <class R>
struct FindRankLoss {
  std::int64_t k;
  double part;
  const R* s;
  int* flag;
  REEL_HD void operator()(std::int64_t i) const {
    if (s[i * k + k - 1] <= static_cast<R>(part) * s[i * k]) *flag = 1;
  }
};

}  // namespace reel::cuda
