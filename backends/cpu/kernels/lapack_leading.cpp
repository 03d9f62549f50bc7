#include "backends/cpu/kernels/lapack_leading.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/lapack_spectral.h"
#include "ops/functors/philox.h"

namespace reel::cpu {

namespace {

using C = std::complex<double>;
using Vector = std::vector<C>;

/// A - shift, factored, singular or not. LAPACK sees its transpose M: so A - shift = M^T, and its adjoint conj(M).
class Shifted {
 public:
  Shifted(std::int64_t n, const double* matrix, C shift) : n_(n), lu_(workspace<C>(n, n)), pivots_(count(n)) {
    std::copy_n(matrix, n * n, lu_.begin());
    for (std::int64_t i = 0; i < n; ++i) lu_[count(i * (n + 1))] -= shift;
    LAPACKE_zgetrf(LAPACK_COL_MAJOR, narrow(n), narrow(n), lu_.data(), narrow(n), pivots_.data());
    for (std::int64_t i = 0; i < n; ++i)  // the shift may be the eigenvalue
      if (C& pivot = lu_[count(i * (n + 1))]; pivot == 0.0) pivot = epsilon<double> * std::abs(shift);
  }
  /// The unit vector x such that op(M) x is a multiple of x, by inverse iteration; empty: it does not settle.
  Vector vector(char op) const {
    Vector x(count(n_)), last;
    for (std::int64_t i = 0; i < n_; ++i) {
      const auto [re, im] = uniform_pair(0, 0, static_cast<std::uint64_t>(i));
      x[count(i)] = {re - 0.5, im - 0.5};
    }
    constexpr int most = 20;
    for (int step = 0; step < most; ++step) {
      last = x;
      if (LAPACKE_zgetrs(LAPACK_COL_MAJOR, op, narrow(n_), 1, lu_.data(), narrow(n_), pivots_.data(), x.data(),
                         narrow(n_)) != 0)
        break;  // NaN, as large numbers overflow
      const double size = cblas_dznrm2(narrow(n_), x.data(), 1);
      C along = 0;
      for (std::int64_t i = 0; i < n_; ++i) along += std::conj(x[count(i)]) * last[count(i)];
      const C phase = along / (std::abs(along) * size);  // turns x back to where it was
      double change = 0;
      for (std::int64_t i = 0; i < n_; ++i) {
        x[count(i)] *= phase;
        change += std::norm(x[count(i)] - last[count(i)]);
      }
      if (std::sqrt(change) < rounding<double>(n_)) return x;
      if (!std::isfinite(change)) break;
    }
    return {};
  }

 private:
  std::int64_t n_;
  Vector lu_;
  std::vector<lapack_int> pivots_;
};

/// A x of a real matrix.
Vector product(std::int64_t n, const double* matrix, const Vector& x) {
  Vector y(count(n));
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(n), 2, narrow(n), 1, matrix, narrow(n),
              reinterpret_cast<const double*>(x.data()), 2, 0, reinterpret_cast<double*>(y.data()), 2);
  return y;
}

C dot(const Vector& x, const Vector& y) {  // x^T y
  C sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// x to about 16 bits. The steps of the unit are not at powers of two: a modulus of 1 is common.
C rounded(C x) {
  const double unit = std::ldexp(1.0, std::ilogb(1.4 * std::abs(x)) - 16);
  return {std::round(x.real() / unit) * unit, std::round(x.imag() / unit) * unit};
}

/// The eigenvalue next to the shift; empty: it does not settle, or is not simple.
std::optional<Eigenpair> eigenpair_at(std::int64_t n, const double* matrix, C shift) {
  const Shifted shifted(n, matrix, shift);
  Eigenpair out;
  out.right = shifted.vector('T');
  if (out.right.empty()) return {};
  out.left = shifted.vector('N');  // its conjugate so far
  if (out.left.empty()) return {};
  const C overlap = dot(out.left, out.right);
  if (is_defective<double>(overlap)) return {};
  out.value = dot(out.left, product(n, matrix, out.right)) / overlap;
  if (std::abs(out.value.imag()) <= epsilon<double> * std::abs(out.value)) out.value.imag(0);
  for (C& v : out.left) v = std::conj(v / overlap);
  return out;
}

/// An eigenvalue of A in the span of the columns, as far as it is one.
struct Ritz {
  C value;
  double residual;  // ||A x - value x|| of its unit vector x
};

/// The Ritz values above or on the axis, the largest first; `image` is A times the columns [n, k].
std::vector<Ritz> ritz_values(std::int64_t n, std::int64_t k, const std::vector<double>& columns,
                              const std::vector<double>& image) {
  const lapack_int size = narrow(k);
  std::vector<double> small = room<double>(k * k), vectors = small, re = room<double>(k), im = re;
  multiply(CblasTrans, CblasNoTrans, k, k, n, columns.data(), n, image.data(), n, small.data());
  check_info(LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', 'V', size, small.data(), size, re.data(), im.data(), nullptr, size,
                           vectors.data(), size),
             "geev", k, k);
  std::vector<double> x = room<double>(n * k), y = x;
  multiply(CblasNoTrans, CblasNoTrans, n, k, k, columns.data(), n, vectors.data(), k, x.data());
  multiply(CblasNoTrans, CblasNoTrans, n, k, k, image.data(), n, vectors.data(), k, y.data());
  std::vector<Ritz> out;
  for (std::int64_t j = 0; j < k; ++j) {
    const C value(re[count(j)], im[count(j)]);
    if (value.imag() < 0) continue;  // the conjugate of the one before, which has both columns
    double residual = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const bool pair = value.imag() > 0;
      const std::size_t at = count(j * n + i), next = count((j + 1) * n + i);
      residual += std::norm(C(y[at], pair ? y[next] : 0) - value * C(x[at], pair ? x[next] : 0));
    }
    out.push_back({value, std::sqrt(residual)});
  }
  std::sort(out.begin(), out.end(), [](const Ritz& a, const Ritz& b) { return std::abs(a.value) > std::abs(b.value); });
  return out;
}

}  // namespace

std::optional<Eigenpair> eigenpair_near(std::int64_t n, const double* matrix, C guess) {
  std::optional<Eigenpair> out = eigenpair_at(n, matrix, rounded(guess));
  if (out && rounded(out->value) != rounded(guess)) out = eigenpair_at(n, matrix, rounded(out->value));
  return out;
}

std::optional<Eigenpair> leading_pair(std::int64_t n, const double* matrix, std::vector<double>& basis) {
  const std::int64_t k = std::ssize(basis) / n;
  std::vector<double> image = room<double>(n * k);
  multiply(CblasTrans, CblasNoTrans, n, k, n, matrix, n, basis.data(), n, image.data());
  const std::vector<Ritz> ritz = ritz_values(n, k, basis, image);
  if (!(std::abs(ritz[0].value) > 0)) return {};
  std::vector<Eigenpair> rivals;   // eigenvalues that may be the largest
  constexpr std::size_t most = 3;  // each takes a factorisation
  double per_square = 1;
  for (const Ritz& r : ritz) {
    // The more normal the matrix, the more is a Ritz value's error like the square of its residual. How much it is that
    // shows at the first one; the others get ten times as much.
    const double error = rivals.empty() ? r.residual : std::min(r.residual, 10 * per_square * r.residual * r.residual);
    if (!rivals.empty() && std::abs(r.value) + error < std::abs(rivals[0].value)) continue;
    std::optional<Eigenpair> pair = rivals.size() < most ? eigenpair_near(n, matrix, r.value) : std::nullopt;
    if (!pair || !(std::abs(pair->value - r.value) <= 2 * error + rounding<double>(n))) return {};
    if (rivals.empty()) per_square = std::max(1.0, std::abs(pair->value - r.value) / (r.residual * r.residual));
    rivals.push_back(std::move(*pair));
  }
  std::sort(rivals.begin(), rivals.end(),
            [](const Eigenpair& a, const Eigenpair& b) { return std::abs(a.value) > std::abs(b.value); });
  if (rivals.size() > 1 && std::abs(rivals[1].value) >= std::abs(rivals[0].value) * (1 - rounding<double>(n)))
    return {};
  basis = orthonormal(n, std::move(image));
  return std::move(rivals[0]);
}

std::vector<double> orthonormal(std::int64_t n, std::vector<double> columns) {
  const lapack_int rows = narrow(n), k = narrow(std::ssize(columns) / n);
  std::vector<double> reflectors(count(k));
  check_info(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, rows, k, columns.data(), rows, reflectors.data()), "geqrf", n, k);
  check_info(LAPACKE_dorgqr(LAPACK_COL_MAJOR, rows, k, k, columns.data(), rows, reflectors.data()), "orgqr", n, k);
  return columns;
}

}  // namespace reel::cpu
