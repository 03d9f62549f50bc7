#include "ops/spectral_parts.h"
#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

/// A matrix on the host, and what defines a decomposition of it, in plain loops.
struct Matrix {
  std::int64_t m, n;
  std::vector<Complex> a;
  Matrix(std::int64_t m, std::int64_t n) : m(m), n(n), a(static_cast<std::size_t>(m * n)) {}
  Complex& operator()(std::int64_t i, std::int64_t j) { return a[static_cast<std::size_t>(i * n + j)]; }
  const Complex& operator()(std::int64_t i, std::int64_t j) const { return a[static_cast<std::size_t>(i * n + j)]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.m, b.n);
  for (std::int64_t i = 0; i < a.m; ++i) {
    for (std::int64_t j = 0; j < b.n; ++j) {
      for (std::int64_t k = 0; k < a.n; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}
Matrix adjoint_of(const Matrix& a) {
  Matrix b(a.n, a.m);
  for (std::int64_t i = 0; i < a.m; ++i) {
    for (std::int64_t j = 0; j < a.n; ++j) b(j, i) = std::conj(a(i, j));
  }
  return b;
}
Matrix diagonal(const std::vector<Complex>& d) {
  const auto n = static_cast<std::int64_t>(d.size());
  Matrix a(n, n);
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = d[static_cast<std::size_t>(i)];
  return a;
}
double distance(const Matrix& a, const Matrix& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.a.size(); ++i) worst = std::max(worst, std::abs(a.a[i] - b.a[i]));
  return worst;
}
double from_unitary(const Matrix& a) {  // its columns
  return distance(adjoint_of(a) * a, diagonal(std::vector<Complex>(static_cast<std::size_t>(a.n), 1)));
}
/// Columns of unit length, the largest component real and positive, exactly.
double from_gauge(const Matrix& v) {
  double worst = 0;
  for (std::int64_t j = 0; j < v.n; ++j) {
    double square = 0;
    std::int64_t top = 0;
    for (std::int64_t i = 0; i < v.m; ++i) {
      square += std::norm(v(i, j));
      if (std::abs(v(i, j)) > std::abs(v(top, j))) top = i;
    }
    worst = std::max(worst, std::abs(square - 1));
    if (v(top, j).imag() != 0 || v(top, j).real() <= 0) return 1;
  }
  return worst;
}

/// The matrices one after the other: those of the input, and the parts [m, n] that the call joined, in row-major order.
template <class F>
ValueCheck each_matrix(std::vector<std::pair<std::int64_t, std::int64_t>> parts, F&& error) {
  return [=](const Tensors& in, const Tensor& out) {
    const auto x = elements(in[0]), y = elements(out);
    const std::int64_t m = in[0].dim(-2), n = in[0].dim(-1);
    const std::int64_t count = in[0].shape().product(0, in[0].rank() - 2);
    auto from = x.begin(), from_out = y.begin();
    const auto take = [](auto& first, std::int64_t rows, std::int64_t columns) {
      Matrix a(rows, columns);
      for (Complex& v : a.a) v = *first++;
      return a;
    };
    double worst = 0;
    for (std::int64_t b = 0; b < count; ++b) {
      const Matrix a = take(from, m, n);
      std::vector<Matrix> p;
      for (const auto& [rows, columns] : parts) p.push_back(take(from_out, rows, columns));
      worst = std::max(worst, error(a, p));
    }
    return from_out == y.end() ? worst : 1.0;
  };
}

/// Results as one tensor [..., all], so that derivatives of all of them are tried together.
Tensor joined(const Tensors& parts, int lead) {
  Tensors flat;
  for (const Tensor& p : parts) {
    std::vector<std::int64_t> dims(p.shape().begin(), p.shape().begin() + lead);
    dims.push_back(p.shape().product(lead, p.rank()));
    flat.push_back(cast(reshape(p, dims), complex_of(p.dtype())));
  }
  return concat(flat, -1);
}

/// Random matrices whose eigenvalues and singular values lie apart, so that differences of finite size say something.
/// `pair`: the first two eigenvalues of the square ones are far from the real axis.
Tensor apart(const Shape& shape, std::uint64_t seed, DType d, bool pair = false) {
  const Tensor x = input(shape, seed, d, -1, 1);
  if (!is_differentiable(d)) return x;
  const std::int64_t m = x.dim(-2), n = x.dim(-1);
  std::vector<double> v(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < std::min(m, n); ++i)
    v[static_cast<std::size_t>(i * n + i)] = 4.0 * static_cast<double>(i) + 2;
  if (pair) {
    v[1] = 16;
    v[static_cast<std::size_t>(n)] = -16;
  }
  return x + cast(Tensor::from<double>(v, {m, n}), d);
}

std::vector<Complex> list(const Matrix& row) { return row.a; }

/// Gelfand's formula: |A^N|^(1/N) for N = 2^60, by squaring.
double spectral_radius_of(Matrix a) {
  double log_radius = 0, part = 1;
  for (int k = 0; k < 60; ++k, part /= 2) {
    double size = 0;
    for (const Complex& v : a.a) size = std::max(size, std::abs(v));
    if (size == 0) return 0;
    log_radius += part * std::log(size);
    for (Complex& v : a.a) v /= size;
    a = a * a;
  }
  return std::exp(log_radius);
}

void eigen_cases(Cases& cases) {
  std::uint64_t seed = 400;
  for (const Shape& shape :
       {Shape{3, 3}, Shape{2, 4, 4}, Shape{1, 1}, Shape{0, 0}, Shape{0, 2, 2}, Shape{2, 1, 3, 3}}) {
    const std::int64_t n = shape[shape.rank() - 1];
    const int lead = shape.rank() - 2;
    for (bool pair : {false, true}) {
      if (pair && n < 2) continue;
      ++seed;
      const auto inputs = [=](DType d) { return Tensors{apart(shape, seed, d, pair)}; };
      cases.push_back({"eig",
                       [=](const Tensors& x) {
                         const EigResult r = eig(x[0]);
                         return joined({r.values, r.vectors}, lead);
                       },
                       inputs, fields, each_matrix({{1, n}, {n, n}}, [](const Matrix& a, const std::vector<Matrix>& p) {
                         return std::max(distance(a * p[1], p[1] * diagonal(list(p[0]))), from_gauge(p[1]));
                       })});
      // All power sums agree with the traces of powers, so all eigenvalues are right.
      cases.push_back({"eigvals", [](const Tensors& x) { return eigvals(x[0]); }, inputs, fields,
                       each_matrix({{1, n}}, [n](const Matrix& a, const std::vector<Matrix>& p) {
                         Matrix power = a;
                         double worst = 0, scale = 1;
                         for (std::int64_t k = 1; k <= n; ++k, power = power * a) {
                           Complex difference = 0;
                           for (std::int64_t i = 0; i < n; ++i)
                             difference += power(i, i) - std::pow(p[0](0, i), static_cast<double>(k));
                           for (const Complex& w : p[0].a)
                             scale = std::max(scale, std::pow(std::abs(w), static_cast<double>(k)));
                           worst = std::max(worst, std::abs(difference) / scale);
                         }
                         return worst;
                       })});
      cases.push_back({"spectral_radius", [](const Tensors& x) { return spectral_radius(x[0]); }, inputs, fields,
                       each_matrix({{1, 1}}, [](const Matrix& a, const std::vector<Matrix>& p) {
                         return std::abs(p[0](0, 0) - spectral_radius_of(a));
                       })});
      cases.push_back({"schur",
                       [=](const Tensors& x) {
                         const SchurResult r = schur(x[0]);
                         return joined({r.Q, r.T}, lead);
                       },
                       inputs, fields,
                       each_matrix({{n, n}, {n, n}},
                                   [n](const Matrix& a, const std::vector<Matrix>& p) {
                                     for (std::int64_t i = 0; i < n; ++i) {
                                       for (std::int64_t j = 0; j < i; ++j) {
                                         if (p[1](i, j) != 0.0) return 1.0;
                                       }
                                     }
                                     return std::max(distance(p[0] * p[1] * adjoint_of(p[0]), a), from_unitary(p[0]));
                                   }),
                       1e-8, 3e-5, false});  // any phases will do; measured against the definition: 2e-5
    }
    cases.push_back(
        {"eigh",
         [=](const Tensors& x) {
           const EigResult r = eigh(x[0]);
           return joined({r.values, r.vectors}, lead);
         },
         [=](DType d) { return Tensors{apart(shape, seed, d)}; }, fields,
         each_matrix({{1, n}, {n, n}}, [n](const Matrix& a, const std::vector<Matrix>& p) {
           Matrix h = a;
           const Matrix ah = adjoint_of(a);
           for (std::size_t i = 0; i < h.a.size(); ++i) h.a[i] = 0.5 * (a.a[i] + ah.a[i]);
           for (std::int64_t i = 0; i < n; ++i) {
             if (p[0](0, i).imag() != 0 || (i > 0 && p[0](0, i).real() < p[0](0, i - 1).real())) return 1.0;
           }
           return std::max({distance(h * p[1], p[1] * diagonal(list(p[0]))), from_unitary(p[1]), from_gauge(p[1])});
         })});
  }
}

void svd_cases(Cases& cases) {
  std::uint64_t seed = 450;
  for (const Shape& shape : {Shape{3, 3}, Shape{5, 3}, Shape{2, 5}, Shape{2, 4, 2}, Shape{3, 2, 3}, Shape{1, 1},
                             Shape{1, 4}, Shape{3, 1}, Shape{0, 0}, Shape{3, 0}, Shape{0, 2}, Shape{0, 3, 2}}) {
    const std::int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1], k = std::min(m, n);
    const int lead = shape.rank() - 2;
    ++seed;
    cases.push_back({"svd",
                     [=](const Tensors& x) {
                       const SvdResult r = svd(x[0]);
                       return joined({r.U, r.S, r.Vh}, lead);
                     },
                     [=](DType d) { return Tensors{apart(shape, seed, d)}; }, fields,
                     each_matrix({{m, k}, {1, k}, {k, n}}, [k](const Matrix& a, const std::vector<Matrix>& p) {
                       for (std::int64_t i = 0; i < k; ++i) {
                         const Complex s = p[1](0, i);
                         if (s.imag() != 0 || s.real() < 0 || (i > 0 && s.real() > p[1](0, i - 1).real())) return 1.0;
                       }
                       return std::max({distance(p[0] * diagonal(list(p[1])) * p[2], a), from_unitary(p[0]),
                                        from_unitary(adjoint_of(p[2])), from_gauge(p[0])});
                     })});
  }
}

void gap_cases(Cases& cases) {
  for (const Shape& shape : {Shape{4}, Shape{2, 3}, Shape{1}, Shape{0}, Shape{0, 3}}) {
    for (bool sums : {false, true}) {
      cases.push_back(
          {"reciprocal_gaps", [=](const Tensors& x) { return reciprocal_gaps(x[0], {.sums = sums, .diagonal = sums}); },
           [=](DType d) {
             const Tensor x = input(shape, 470, d, 0, 1);
             std::vector<double> steps;
             for (std::int64_t i = 0; i < shape[shape.rank() - 1]; ++i)
               steps.push_back(2.0 * static_cast<double>(i) + 1);
             return Tensors{is_differentiable(d) ? x + cast(Tensor::from<double>(steps, {shape[shape.rank() - 1]}), d)
                                                 : x};
           },
           fields, listed([=](const std::vector<std::vector<Complex>>& in) {
             const auto n = static_cast<std::size_t>(shape[shape.rank() - 1]);
             std::vector<Complex> y;
             for (std::size_t first = 0; first < in[0].size(); first += n) {
               for (std::size_t i = 0; i < n; ++i) {
                 for (std::size_t j = 0; j < n; ++j) {
                   const Complex wi = in[0][first + i], wj = in[0][first + j];
                   y.push_back(sums ? 1.0 / (wj + wi) : i == j ? 0 : 1.0 / (wj - wi));
                 }
               }
             }
             return y;
           })});
    }
  }
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  eigen_cases(cases);
  svd_cases(cases);
  gap_cases(cases);
});

}  // namespace

}  // namespace reel::test
