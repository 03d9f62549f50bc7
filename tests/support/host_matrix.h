// Matrices on the host and their naive arithmetic: what the linear algebra ops are held against.
#pragma once
#include <algorithm>

#include "tests/support/check.h"

namespace reel::test {

struct HostMatrix {
  using Complex = std::complex<double>;
  std::int64_t m = 0, n = 0;
  std::vector<Complex> x;

  HostMatrix(std::int64_t m, std::int64_t n) : m(m), n(n), x(static_cast<std::size_t>(m * n)) {}
  static HostMatrix identity(std::int64_t n) {
    HostMatrix out(n, n);
    for (std::int64_t i = 0; i < n; ++i) out(i, i) = 1;
    return out;
  }
  Complex& operator()(std::int64_t i, std::int64_t j) { return x[static_cast<std::size_t>(i * n + j)]; }
  const Complex& operator()(std::int64_t i, std::int64_t j) const { return x[static_cast<std::size_t>(i * n + j)]; }

  HostMatrix adjoint() const {
    HostMatrix out(n, m);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) out(j, i) = std::conj((*this)(i, j));
    }
    return out;
  }
  HostMatrix column(std::int64_t j) const {
    HostMatrix out(m, 1);
    for (std::int64_t i = 0; i < m; ++i) out(i, 0) = (*this)(i, j);
    return out;
  }
  /// The largest absolute value; infinity when one is NaN.
  double size() const {
    double largest = 0;
    for (const Complex& v : x) largest = std::isnan(std::abs(v)) ? INFINITY : std::max(largest, std::abs(v));
    return largest;
  }
};

inline HostMatrix operator*(const HostMatrix& a, const HostMatrix& b) {
  HostMatrix out(a.m, b.n);
  for (std::int64_t i = 0; i < a.m; ++i) {
    for (std::int64_t j = 0; j < b.n; ++j) {
      for (std::int64_t k = 0; k < a.n; ++k) out(i, j) += a(i, k) * b(k, j);
    }
  }
  return out;
}
inline HostMatrix operator+(HostMatrix a, const HostMatrix& b) {
  for (std::size_t i = 0; i < a.x.size(); ++i) a.x[i] += b.x.at(i);
  return a;
}
inline HostMatrix operator*(std::complex<double> s, HostMatrix a) {
  for (auto& v : a.x) v *= s;
  return a;
}
inline HostMatrix operator-(const HostMatrix& a, const HostMatrix& b) { return a + (-1.0) * b; }

/// The matrices of all places, or the one of two axes, which all places share, `at_least` times.
inline std::vector<HostMatrix> host(const Tensor& x, std::size_t at_least = 1) {
  const std::int64_t m = x.dim(-2), n = x.dim(-1), count = x.shape().product(0, x.rank() - 2);
  const auto all = elements(x);
  std::vector<HostMatrix> out;
  for (std::int64_t i = 0; i < count; ++i) {
    HostMatrix one(m, n);
    std::copy_n(all.begin() + i * m * n, m * n, one.x.begin());
    out.push_back(one);
  }
  if (x.rank() == 2) out.resize(at_least, out[0]);
  return out;
}

/// Without row i and column j.
inline HostMatrix without(const HostMatrix& a, std::int64_t i, std::int64_t j) {
  HostMatrix out(a.m - 1, a.n - 1);
  for (std::int64_t k = 0; k < out.m; ++k) {
    for (std::int64_t l = 0; l < out.n; ++l) out(k, l) = a(k + (k < i ? 0 : 1), l + (l < j ? 0 : 1));
  }
  return out;
}
/// By expansion along the first row.
inline std::complex<double> determinant(const HostMatrix& a) {
  std::complex<double> sum = a.n == 0 ? 1 : 0;
  for (std::int64_t j = 0; j < a.n; ++j) sum += (j % 2 == 0 ? 1.0 : -1.0) * a(0, j) * determinant(without(a, 0, j));
  return sum;
}
/// By Cramer's rule.
inline HostMatrix inverse_of(const HostMatrix& a) {
  HostMatrix out(a.n, a.n);
  for (std::int64_t i = 0; i < a.n; ++i) {
    for (std::int64_t j = 0; j < a.n; ++j)
      out(j, i) = ((i + j) % 2 == 0 ? 1.0 : -1.0) * determinant(without(a, i, j)) / determinant(a);
  }
  return out;
}

/// Exponential and its derivative in direction e by their series, in long double, for norms up to about 20. d(A^k) = A
/// d(A^(k-1)) + E A^(k-1).
inline std::pair<HostMatrix, HostMatrix> exponential_series(const HostMatrix& a, const HostMatrix& e) {
  using Wide = std::complex<long double>;
  const std::int64_t n = a.n;
  const auto at = [n](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
  std::vector<Wide> power(a.x.size()), moved(a.x.size()), sum, total(a.x.size());
  for (std::int64_t i = 0; i < n; ++i) power[at(i, i)] = 1;
  sum = power;
  for (int k = 1; k < 150; ++k) {
    std::vector<Wide> next(a.x.size()), next_moved(a.x.size());
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t l = 0; l < n; ++l) {
          next[at(i, j)] += Wide(a(i, l)) * power[at(l, j)];
          next_moved[at(i, j)] += Wide(a(i, l)) * moved[at(l, j)] + Wide(e(i, l)) * power[at(l, j)];
        }
        next[at(i, j)] /= static_cast<long double>(k);
        next_moved[at(i, j)] /= static_cast<long double>(k);
      }
    }
    power = next;
    moved = next_moved;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += power[i], total[i] += moved[i];
  }
  std::pair<HostMatrix, HostMatrix> out{HostMatrix(n, n), HostMatrix(n, n)};
  for (std::size_t i = 0; i < sum.size(); ++i) {
    out.first.x[i] = HostMatrix::Complex(sum[i]);
    out.second.x[i] = HostMatrix::Complex(total[i]);
  }
  return out;
}

}  // namespace reel::test
