// Factorizations: lu, cholesky, qr, determinant; and through the SVD pinv and polar_factor.
#include <algorithm>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/lapack_calls.h"
#include "backends/cpu/kernels/wide_lu.h"

namespace reel::cpu {

namespace {

template <class T>
void lu_one(std::int64_t m, std::int64_t n, const T* a, T* p, T* l, T* u) {
  const std::int64_t r = std::min(m, n);
  std::vector<T> packed(a, a + m * n);
  std::vector<lapack_int> swaps(count(r));
  if (r > 0)  // a zero pivot is not an error; pivots are rows, so LAPACK must see the matrix itself
    require_accepted(
        REEL_LAPACK(getrf)(LAPACK_ROW_MAJOR, narrow(m), narrow(n), packed.data(), narrow(n), swaps.data()));
  std::vector<std::int64_t> row(count(m));  // row i of l u is row row[i] of a
  std::iota(row.begin(), row.end(), 0);
  if (all_finite(packed.data(), m * n)) {
    for (std::int64_t i = 0; i < r; ++i) std::swap(row[count(i)], row[count(swaps[count(i)] - 1)]);
  } else {
    const WideLu<T> wide(m, n, a);
    row = wide.rows;
    round_to(wide.lu, packed.data());
  }
  std::fill_n(p, m * m, T(0));
  for (std::int64_t i = 0; i < m; ++i) p[row[count(i)] * m + i] = T(1);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < r; ++j) l[i * r + j] = j < i ? packed[count(i * n + j)] : T(j == i ? 1 : 0);
  }
  for (std::int64_t i = 0; i < r; ++i) {
    for (std::int64_t j = 0; j < n; ++j) u[i * n + j] = j < i ? T(0) : packed[count(i * n + j)];
  }
}

/// LAPACK sees the transpose of a; its LQ factorization is the transpose of the QR factorization of a.
template <class T>
void qr_one(std::int64_t m, std::int64_t n, const T* a, T* q, T* r) {
  const std::int64_t k = std::min(m, n);
  if (k == 0) return;
  std::vector<T> work = workspace(n, m, a), tau(count(k));
  require_accepted(REEL_LAPACK(gelqf)(LAPACK_COL_MAJOR, narrow(n), narrow(m), work.data(), narrow(n), tau.data()));
  std::vector<T> phase(count(k));
  for (std::int64_t i = 0; i < k; ++i) {
    const T d = work[count(i * n + i)];
    phase[count(i)] = d == T(0) ? T(1) : d / std::abs(d);
    for (std::int64_t j = 0; j < n; ++j) {
      const T& x = work[count(i * n + j)];
      if constexpr (is_complex_type<T>)
        r[i * n + j] = j < i ? T(0) : x * std::conj(phase[count(i)]);
      else
        r[i * n + j] = j < i ? T(0) : x * phase[count(i)];
    }
    r[i * n + i] = std::abs(d);
  }
  const auto unitary = fitting<T>(LAPACKE_sorglq, LAPACKE_dorglq, LAPACKE_cunglq, LAPACKE_zunglq);
  require_accepted(unitary(LAPACK_COL_MAJOR, narrow(k), narrow(m), narrow(k), work.data(), narrow(n), tau.data()));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < k; ++j) q[i * k + j] = work[count(i * n + j)] * phase[count(j)];
  }
}

struct Determinant {
  std::complex<double> sign{1}, mantissa{1};  // the determinant is mantissa 2^exponent
  int exponent = 0;
  double log_abs = 0;

  /// Multiplies by factor 2^shift. The factor is split likewise first: its product with the mantissa would overflow.
  void times(std::complex<double> factor, int shift = 0) {
    const double most = std::max(std::abs(factor.real()), std::abs(factor.imag()));
    const int e = most == 0 ? 0 : std::ilogb(most);
    factor = scaled(factor, -e);
    const double part = std::abs(factor), size = std::scalbn(part, e + shift);
    log_abs += std::isnormal(size) ? std::log(size) : std::log(part) + (e + shift) * std::numbers::ln2;
    sign = part == 0 ? 0 : sign * (factor / part);
    mantissa *= factor;
    if (mantissa == 0.0) return;
    const int up = std::ilogb(std::abs(mantissa));
    exponent += e + shift + up;
    mantissa = scaled(mantissa, -up);
  }
  static std::complex<double> scaled(std::complex<double> z, int e) {
    return {std::scalbn(z.real(), e), std::scalbn(z.imag(), e)};
  }
  std::complex<double> value() const { return scaled(mantissa, exponent); }
};

template <class T>
Determinant wide_determinant(std::int64_t n, const T* a) {
  const WideLu<T> wide(n, n, a);
  Determinant d;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::complex<long double> pivot(wide.at(i, i));
    const long double most = std::max(std::abs(pivot.real()), std::abs(pivot.imag()));
    const int e = most == 0 ? 0 : std::ilogb(most);
    d.times({static_cast<double>(std::scalbn(pivot.real(), -e)), static_cast<double>(std::scalbn(pivot.imag(), -e))},
            e);
  }
  if (wide.odd) d.times(-1);
  return d;
}

template <class T>
Determinant determinant_one(std::int64_t n, const T* a) {
  Determinant d;
  if (n == 0) return d;
  std::vector<T> lu(a, a + n * n);
  std::vector<lapack_int> swaps(count(n));
  require_accepted(REEL_LAPACK(getrf)(LAPACK_COL_MAJOR, narrow(n), narrow(n), lu.data(), narrow(n), swaps.data()));
  if (!all_finite(lu.data(), n * n)) return wide_determinant(n, a);
  for (std::int64_t i = 0; i < n; ++i) {
    d.times(std::complex<double>(lu[count(i * n + i)]));
    if (swaps[count(i)] != i + 1) d.times(-1);
  }
  return d;
}

/// z, or its real part, as a T.
template <class T>
T number(std::complex<double> z) {
  if constexpr (is_complex_type<T>)
    return T(z);
  else
    return static_cast<T>(z.real());
}

/// u diag(s) vh = the transpose of a row-major [m, n] matrix: [n, r], [r], [r, m], column-major.
template <class T>
struct Svd {
  std::int64_t m, n, r;
  std::vector<T> u, vh;
  std::vector<Real<T>> s;

  Svd(std::int64_t rows, std::int64_t columns, const T* a)
      : m(rows), n(columns), r(std::min(m, n)), u(workspace<T>(n, r)), vh(workspace<T>(r, m)), s(count(r)) {
    std::vector<T> work = workspace(n, m, a);
    const lapack_int info = REEL_LAPACK(gesdd)(LAPACK_COL_MAJOR, 'S', narrow(n), narrow(m), work.data(), narrow(n),
                                               s.data(), u.data(), narrow(n), vh.data(), narrow(r));
    require_accepted(info);
    if (info > 0) rule_error("the singular values of a {}x{} matrix were not found: no convergence", m, n);
    if (!all_finite(s.data(), r))
      rule_error("the singular values of a {}x{} matrix overflow. Hint: scale it down", m, n);
  }
};

}  // namespace

void Cpu::lu(const LuArgs& a) {
  on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t r = std::min(a.m, a.n);
    for (std::int64_t i = 0; i < a.batch; ++i) {
      const T* matrix = static_cast<const T*>(a.a) + i * a.m * a.n;
      T* u = static_cast<T*>(a.u) + i * r * a.n;
      require_finite(matrix, a.m, a.n, i, a.batch);
      lu_one(a.m, a.n, matrix, static_cast<T*>(a.p) + i * a.m * a.m, static_cast<T*>(a.l) + i * a.m * r, u);
      require_no_overflow(u, r * a.n, a.m, a.n, i, a.batch);
    }
  });
}

void Cpu::cholesky(const CholeskyArgs& a) {
  on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t n = a.n;
    if (n == 0) return;
    for (std::int64_t i = 0; i < a.batch; ++i) {
      const T* matrix = static_cast<const T*>(a.a) + i * n * n;
      T* l = static_cast<T*>(a.l) + i * n * n;
      require_finite(matrix, n, n, i, a.batch);
      std::copy_n(matrix, n * n, l);
      // Our lower triangle is the upper triangle that LAPACK sees, and the transpose of its upper factor is our lower
      // one.
      const lapack_int info = REEL_LAPACK(potrf)(LAPACK_COL_MAJOR, 'U', narrow(n), l, narrow(n));
      require_accepted(info);
      if (info > 0)
        rule_error("{} is not positive definite: its leading {}x{} part is not", which(n, n, i, a.batch), info, info);
      for (std::int64_t row = 0; row < n; ++row) std::fill(l + row * n + row + 1, l + (row + 1) * n, T(0));
    }
  });
}

void Cpu::qr(const QrArgs& a) {
  on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t k = std::min(a.m, a.n);
    for (std::int64_t i = 0; i < a.batch; ++i) {
      const T* matrix = static_cast<const T*>(a.a) + i * a.m * a.n;
      T* r = static_cast<T*>(a.r) + i * k * a.n;
      require_finite(matrix, a.m, a.n, i, a.batch);
      qr_one(a.m, a.n, matrix, static_cast<T*>(a.q) + i * a.m * k, r);
      require_no_overflow(r, k * a.n, a.m, a.n, i, a.batch);
    }
  });
}

void Cpu::determinant(const DeterminantArgs& a) {
  on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.batch; ++i) {
      const T* matrix = static_cast<const T*>(a.a) + i * a.n * a.n;
      require_finite(matrix, a.n, a.n, i, a.batch);
      const Determinant d = determinant_one(a.n, matrix);
      if (a.det) {
        T& det = static_cast<T*>(a.det)[i];
        det = number<T>(d.value());
        if (!all_finite(&det, 1))
          rule_error("the determinant of {} overflows: its logarithm is {:.4g}. Hint: use slogdet",
                     which(a.n, a.n, i, a.batch), d.log_abs);
      }
      if (a.sign) static_cast<T*>(a.sign)[i] = number<T>(d.sign);
      if (a.log_abs) static_cast<Real<T>*>(a.log_abs)[i] = static_cast<Real<T>>(d.log_abs);
    }
  });
}

void Cpu::pinv(const PinvArgs& a) {
  on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
    if (a.m == 0 || a.n == 0) return;
    for (std::int64_t i = 0; i < a.batch; ++i) {
      const T* matrix = static_cast<const T*>(a.a) + i * a.m * a.n;
      T* out = static_cast<T*>(a.out) + i * a.m * a.n;
      require_finite(matrix, a.m, a.n, i, a.batch);
      Svd<T> svd(a.m, a.n, matrix);
      const Real<T> limit = static_cast<Real<T>>(a.rcond) * svd.s[0];
      for (std::int64_t j = 0; j < svd.r; ++j) {
        const Real<T> s = svd.s[count(j)], inverse = s <= limit ? 0 : 1 / s;
        for (std::int64_t k = 0; k < a.n; ++k) svd.u[count(j * a.n + k)] *= inverse;
      }
      multiply<T>(CblasConjTrans, CblasConjTrans, a.m, a.n, svd.r, svd.vh.data(), svd.r, svd.u.data(), a.n, out);
      require_no_overflow(out, a.m * a.n, a.m, a.n, i, a.batch);
    }
  });
}

void Cpu::polar_factor(const PolarFactorArgs& a) {
  on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
    if (a.m == 0 || a.n == 0) return;
    for (std::int64_t i = 0; i < a.batch; ++i) {
      const T* matrix = static_cast<const T*>(a.a) + i * a.m * a.n;
      require_finite(matrix, a.m, a.n, i, a.batch);
      const Svd<T> svd(a.m, a.n, matrix);
      if (svd.s.back() <= static_cast<Real<T>>(a.m) * std::numeric_limits<Real<T>>::epsilon() * svd.s[0])
        rule_error(
            "{} is not of full rank, so that its polar factor is not unique: its singular values go from {:.2g} to "
            "{:.2g}",
            which(a.m, a.n, i, a.batch), svd.s[0], svd.s.back());
      multiply<T>(CblasNoTrans, CblasNoTrans, a.n, a.m, svd.r, svd.u.data(), a.n, svd.vh.data(), svd.r,
                  static_cast<T*>(a.out) + i * a.m * a.n);
    }
  });
}

}  // namespace reel::cpu
