// Linear equations: solve, triangular_solve, sylvester.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/lapack_calls.h"
#include "backends/cpu/kernels/wide_lu.h"

namespace reel::cpu {

namespace {

/// x = op(t)^-1 x in place, for a triangle t of a row-major matrix: [n, n], [n, k].
template <class T>
void solve_triangle(CBLAS_UPLO triangle, CBLAS_TRANSPOSE op, CBLAS_DIAG diagonal, std::int64_t n, std::int64_t k,
                    const T* t, T* x) {
  const auto trsm = fitting<T>(cblas_strsm, cblas_dtrsm, cblas_ctrsm, cblas_ztrsm);
  const T one(1);
  const auto call = [&](auto alpha) {
    trsm(CblasRowMajor, CblasLeft, triangle, op, diagonal, narrow(n), narrow(k), alpha, t, narrow(n), x, narrow(k));
  };
  if constexpr (is_complex_type<T>)
    call(&one);
  else
    call(one);
}

/// P L U = the transpose of a, which is how LAPACK sees a row-major matrix.
template <class T>
struct Factors {
  explicit Factors(std::int64_t size) : n(size), lu(count(n * n)), swaps(count(n)) {}
  std::int64_t n;
  std::vector<T> lu;
  std::vector<lapack_int> swaps;
  bool finite = true;

  void factor(const T* a, std::int64_t i, std::int64_t batch) {
    require_finite(a, n, n, i, batch);
    std::copy_n(a, n * n, lu.begin());
    const lapack_int info =
        REEL_LAPACK(getrf)(LAPACK_COL_MAJOR, narrow(n), narrow(n), lu.data(), narrow(n), swaps.data());
    require_accepted(info);
    finite = all_finite(lu.data(), n * n);
    if (finite && info > 0) rule_error("{} is singular: pivot {} is 0", which(n, n, i, batch), info - 1);
  }

  // a = U^t L^t P^t: read row-major, the array holds U^t in its lower triangle and L^t, with a unit diagonal, in its
  // upper one.
  void solve(std::int64_t k, T* x) const {
    solve_triangle(CblasLower, CblasNoTrans, CblasNonUnit, n, k, lu.data(), x);
    solve_triangle(CblasUpper, CblasNoTrans, CblasUnit, n, k, lu.data(), x);
    for (std::int64_t i = n; i-- > 0;) swap_rows(i, k, x);
  }
  void solve_adjoint(std::int64_t k, T* x) const {
    for (std::int64_t i = 0; i < n; ++i) swap_rows(i, k, x);
    solve_triangle(CblasUpper, CblasConjTrans, CblasUnit, n, k, lu.data(), x);
    solve_triangle(CblasLower, CblasConjTrans, CblasNonUnit, n, k, lu.data(), x);
  }
  void swap_rows(std::int64_t i, std::int64_t k, T* x) const {
    const std::int64_t other = swaps[count(i)] - 1;
    if (other != i) std::swap_ranges(x + i * k, x + (i + 1) * k, x + other * k);
  }
};

/// The solution of place i, where the factors or what they give are not finite.
template <class T>
void solve_wide(const SolveArgs& s, std::int64_t i, const T* a, const T* b, T* x) {
  const std::int64_t n = s.n, k = s.k;
  const WideLu<T> wide(n, n, a, s.adjoint);
  std::vector<Wide<T>> y(count(n * k));
  for (std::int64_t row = 0; row < n; ++row) {
    if (wide.at(row, row) == Wide<T>(0)) rule_error("{} is singular: pivot {} is 0", which(n, n, i, s.batch), row);
    std::copy_n(b + wide.rows[count(row)] * k, k, y.begin() + row * k);
  }
  substitute(false, true, n, k, wide.lu, y);
  substitute(true, false, n, k, wide.lu, y);
  round_to(y, x);
}

template <class T>
void check_triangle(const TriangularSolveArgs& s, const T* a, std::int64_t i) {
  const std::int64_t n = s.n, skip = s.unit_diagonal ? 1 : 0;
  Real<T> largest = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t first = s.upper ? j + skip : 0, last = s.upper ? n : j + 1 - skip;
    if (!all_finite(a + j * n + first, last - first))
      rule_error("{} has elements that are not finite", which(n, n, i, s.batch));
    largest = std::max(largest, std::abs(a[j * n + j]));
  }
  if (s.unit_diagonal) return;
  for (std::int64_t j = 0; j < n; ++j) {
    const Real<T> d = std::abs(a[j * n + j]);
    if (d == 0)
      rule_error("{} is singular: element {} of its diagonal is 0", which(n, n, i, s.batch), j);
    else if (d <= static_cast<Real<T>>(s.tolerance) * largest)
      rule_error("{} is singular to working precision: element {} of its diagonal is {:.2g}, the largest is {:.2g}",
                 which(n, n, i, s.batch), j, d, largest);
  }
}

template <class T>
struct Schur {  // a = 2^e q t q^H, column-major; t upper triangular, with 2x2 blocks for complex pairs of a real a
  std::vector<T> t, q;
  std::vector<std::complex<Real<T>>> eigenvalues;
  int exponent;

  Schur(const T* a, std::int64_t n, int e)
      : t(workspace(n, n, a)), q(workspace<T>(n, n)), eigenvalues(count(n)), exponent(e) {
    scale(t, -exponent);
    lapack_int unused = 0, info = 0;
    const auto gees = REEL_LAPACK(gees);
    if constexpr (is_complex_type<T>) {
      info = gees(LAPACK_COL_MAJOR, 'V', 'N', nullptr, narrow(n), t.data(), narrow(n), &unused, eigenvalues.data(),
                  q.data(), narrow(n));
    } else {
      std::vector<T> re(count(n)), im(count(n));
      info = gees(LAPACK_COL_MAJOR, 'V', 'N', nullptr, narrow(n), t.data(), narrow(n), &unused, re.data(), im.data(),
                  q.data(), narrow(n));
      for (std::size_t i = 0; i < re.size(); ++i) eigenvalues[i] = {re[i], im[i]};
    }
    require_accepted(info);
    if (info > 0)
      rule_error("the eigenvalues of a {}x{} matrix were not found: the QR iteration did not converge", n, n);
    require_no_overflow(t.data(), n * n, fmt::format("a {0}x{0} matrix", n));
  }
  Real<T> norm() const {
    Real<T> sum = 0;
    for (const T& x : t) sum = std::hypot(sum, std::abs(x));
    return sum;
  }
};

/// Throws if an eigenvalue of a equals one of -b to working precision.
template <class T>
void check_separation(const Schur<T>& a, const Schur<T>& b) {
  const auto n = static_cast<Real<T>>(std::max(a.eigenvalues.size(), b.eigenvalues.size()));
  const Real<T> limit = n * std::numeric_limits<Real<T>>::epsilon() * (a.norm() + b.norm());
  for (const auto& x : a.eigenvalues) {
    for (const auto& y : b.eigenvalues) {
      if (std::abs(x + y) <= limit)
        rule_error("A and -B share the eigenvalue {:.3g}{:+.3g}i, so that there is no unique X",
                   std::ldexp(x.real(), a.exponent), std::ldexp(x.imag(), a.exponent));
    }
  }
}

/// Solves b' x' + x' a' = c', a and b without their powers of two, where ' is the transpose that LAPACK sees.
template <class T>
void solve_sylvester(const SylvesterArgs& s, const Schur<T>& a, const Schur<T>& b, const T* c, T* x) {
  const std::int64_t m = s.m, n = s.n;
  std::vector<T> half(count(m * n));
  multiply<T>(CblasConjTrans, CblasNoTrans, n, m, n, b.q.data(), n, c, n, half.data());
  multiply<T>(CblasNoTrans, CblasNoTrans, n, m, m, half.data(), n, a.q.data(), m, x);
  Real<T> factor = 1;
  const lapack_int info = REEL_LAPACK(trsyl)(LAPACK_COL_MAJOR, 'N', 'N', 1, narrow(n), narrow(m), b.t.data(), narrow(n),
                                             a.t.data(), narrow(m), x, narrow(n), &factor);
  require_accepted(info);
  if (info > 0) rule_error("A and -B have a common eigenvalue, so that there is no unique X");
  multiply<T>(CblasNoTrans, CblasNoTrans, n, m, n, b.q.data(), n, x, n, half.data());
  multiply<T>(CblasNoTrans, CblasConjTrans, n, m, m, half.data(), n, a.q.data(), m, x);
  for (std::int64_t i = 0; i < m * n; ++i) x[i] /= factor;
}

}  // namespace

void Cpu::solve(const SolveArgs& s) {
  on_field(s.dtype, [&]<class T>(std::type_identity<T>) {
    if (s.n == 0 || s.k == 0) return;
    Factors<T> factors(s.n);
    for (std::int64_t i = 0; i < s.batch; ++i) {
      const T *a = static_cast<const T*>(s.a) + i * s.stride_a, *b = static_cast<const T*>(s.b) + i * s.stride_b;
      T* x = static_cast<T*>(s.x) + i * s.n * s.k;
      if (i == 0 || s.stride_a != 0) factors.factor(a, i, s.batch);
      require_finite(b, s.n, s.k, i, s.batch);
      std::copy_n(b, s.n * s.k, x);
      if (s.adjoint)
        factors.solve_adjoint(s.k, x);
      else
        factors.solve(s.k, x);
      if (!factors.finite || !all_finite(x, s.n * s.k)) solve_wide(s, i, a, b, x);
      require_no_overflow(x, s.n * s.k, s.n, s.n, i, s.batch);
    }
  });
}

void Cpu::triangular_solve(const TriangularSolveArgs& s) {
  on_field(s.dtype, [&]<class T>(std::type_identity<T>) {
    if (s.n == 0 || s.k == 0) return;
    for (std::int64_t i = 0; i < s.batch; ++i) {
      const T *a = static_cast<const T*>(s.a) + i * s.stride_a, *b = static_cast<const T*>(s.b) + i * s.stride_b;
      T* x = static_cast<T*>(s.x) + i * s.n * s.k;
      check_triangle(s, a, i);
      require_finite(b, s.n, s.k, i, s.batch);
      std::copy_n(b, s.n * s.k, x);
      solve_triangle(s.upper ? CblasUpper : CblasLower, s.adjoint ? CblasConjTrans : CblasNoTrans,
                     s.unit_diagonal ? CblasUnit : CblasNonUnit, s.n, s.k, a, x);
      if (!all_finite(x, s.n * s.k)) {
        std::vector<Wide<T>> y = widened(s.n, s.k, b);
        substitute(s.upper != s.adjoint, s.unit_diagonal, s.n, s.k, widened(s.n, s.n, a, s.adjoint), y);
        round_to(y, x);
      }
      require_no_overflow(x, s.n * s.k, s.n, s.n, i, s.batch);
    }
  });
}

void Cpu::sylvester(const SylvesterArgs& s) {
  on_field(s.dtype, [&]<class T>(std::type_identity<T>) {
    if (s.m == 0 || s.n == 0) return;
    std::optional<Schur<T>> left, right;
    for (std::int64_t i = 0; i < s.batch; ++i) {
      const T *a = static_cast<const T*>(s.a) + i * s.stride_a, *b = static_cast<const T*>(s.b) + i * s.stride_b;
      const T* c = static_cast<const T*>(s.c) + i * s.stride_c;
      T* x = static_cast<T*>(s.x) + i * s.m * s.n;
      require_finite(a, s.m, s.m, i, s.batch);
      require_finite(b, s.n, s.n, i, s.batch);
      require_finite(c, s.m, s.n, i, s.batch);
      const int exponent = extreme_exponent(std::max(largest_part(a, s.m * s.m), largest_part(b, s.n * s.n)));
      if (!left || s.stride_a != 0 || left->exponent != exponent) left.emplace(a, s.m, exponent);
      if (!right || s.stride_b != 0 || right->exponent != exponent) right.emplace(b, s.n, exponent);
      check_separation(*left, *right);
      std::vector<T> scaled(c, c + s.m * s.n);
      scale(scaled, -exponent);
      require_no_overflow(scaled.data(), std::ssize(scaled), s.m, s.n, i, s.batch);
      solve_sylvester(s, *left, *right, scaled.data(), x);
      require_no_overflow(x, s.m * s.n, s.m, s.n, i, s.batch);
    }
  });
}

}  // namespace reel::cpu
