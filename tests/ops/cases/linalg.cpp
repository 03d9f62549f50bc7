// Rows of the linear algebra ops. Inputs are well conditioned: random elements in [-1, 1] and 3 on a diagonal.
#include "tests/ops/op_cases.h"
#include "tests/support/host_matrix.h"

namespace reel::test {

namespace {

using Host = HostMatrix;
using Hosts = std::vector<HostMatrix>;

/// Random elements, and `shift` added where row + down = column (cyclic).
Tensor matrix(const Shape& shape, std::uint64_t seed, DType d, double shift = 3, std::int64_t down = 0) {
  if (!is_differentiable(d)) return input(shape, seed, d);
  const std::int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1];
  std::vector<Complex> v = elements(input(shape, seed, d, -1, 1));
  for (std::size_t k = 0; k < v.size(); ++k) {
    const auto place = static_cast<std::int64_t>(k) % (m * n);
    if ((place / n + down) % m == place % n) v[k] += shift;
  }
  return cast(Tensor::from<Complex>(v, shape), d);
}

/// The largest residual of f over all places; f(inputs, output) is 0 for the right output.
ValueCheck residual(const std::function<Host(const Hosts& in, const Host& out)>& f) {
  return [f](const Tensors& in, const Tensor& out) {
    const Hosts all = host(out);
    double error = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Hosts sides;
      for (const Tensor& x : in) sides.push_back(host(x, all.size()).at(i));
      error = std::max(error, f(sides, all[i]).size());
    }
    return error;
  };
}

/// Several results as one vector, and back.
Tensor flat(const Tensors& parts) {
  Tensors rows;
  for (const Tensor& p : parts) rows.push_back(reshape(cast(p, parts[0].dtype()), {p.numel()}));
  return concat(rows, 0);
}
Tensors unflat(const Tensor& all, const std::vector<Shape>& shapes) {
  Tensors out;
  std::int64_t first = 0;
  for (const Shape& s : shapes) {
    out.push_back(reshape(slice(all, 0, first, first + s.numel()), {s.begin(), s.end()}));
    first += s.numel();
  }
  return out;
}
Shape with(const Shape& like, std::int64_t m, std::int64_t n) {
  Shape s = like;
  s.set(s.rank() - 2, m);
  s.set(s.rank() - 1, n);
  return s;
}

/// The part of a strictly below the diagonal.
Host below(Host a) {
  for (std::int64_t i = 0; i < a.m; ++i) {
    for (std::int64_t j = i; j < a.n; ++j) a(i, j) = 0;
  }
  return a;
}
/// How far a triangle is from: diagonal real and not negative, zeros below.
double upper_with_positive_diagonal(const Host& r) {
  double error = below(r).size();
  for (std::int64_t i = 0; i < std::min(r.m, r.n); ++i)
    error = std::max({error, std::abs(r(i, i).imag()), -r(i, i).real()});
  return error;
}

const std::vector<Shape> squares{{3, 3}, {4, 4}, {2, 3, 3}, {2, 1, 2, 2}, {1, 1}, {0, 0}, {0, 3, 3}};
const std::vector<Shape> oblongs{{3, 3}, {4, 2}, {2, 4}, {2, 3, 3}, {2, 4, 3}, {2, 3, 4},
                                 {1, 1}, {0, 0}, {3, 0}, {0, 3},    {0, 3, 2}};
const std::vector<std::pair<Shape, Shape>> equations{
    {{3, 3}, {3, 2}}, {{2, 3, 3}, {2, 3, 2}}, {{3, 3}, {2, 3, 2}},          {{2, 3, 3}, {3, 2}},   {{1, 1}, {1, 1}},
    {{0, 0}, {0, 2}}, {{3, 3}, {3, 0}},       {{2, 2, 3, 3}, {2, 2, 3, 1}}, {{0, 3, 3}, {0, 3, 2}}};

void add_equations(Cases& cases) {
  for (const auto& [a, b] : equations) {
    const auto inputs = [a = a, b = b](DType d) { return Tensors{matrix(a, 101, d), input(b, 102, d)}; };
    for (bool adjoint : {false, true})
      cases.push_back(
          {"solve", [=](const Tensors& x) { return solve(x[0], x[1], {.adjoint = adjoint}); }, inputs, fields,
           residual([=](const Hosts& in, const Host& X) { return (adjoint ? in[0].adjoint() : in[0]) * X - in[1]; })});
    for (unsigned bits = 0; bits < 8; ++bits) {
      const TriangularFlags flags{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
      cases.push_back({"triangular_solve", [=](const Tensors& x) { return triangular_solve(x[0], x[1], flags); },
                       inputs, fields, residual([=](const Hosts& in, const Host& X) {
                         Host T = flags.upper ? below(in[0].adjoint()).adjoint() : below(in[0]);
                         for (std::int64_t i = 0; i < T.n; ++i) T(i, i) = flags.unit_diagonal ? 1 : in[0](i, i);
                         return (flags.adjoint ? T.adjoint() : T) * X - in[1];
                       })});
    }
  }
  for (const Shape& shape : squares)
    cases.push_back({"inverse", [](const Tensors& x) { return inverse(x[0]); },
                     [=](DType d) { return Tensors{matrix(shape, 103, d)}; }, fields,
                     residual([](const Hosts& in, const Host& X) { return in[0] * X - Host::identity(X.n); })});
  const std::vector<std::array<Shape, 3>> sylvester_shapes{
      {Shape{3, 3}, Shape{2, 2}, Shape{3, 2}},         {Shape{2, 3, 3}, Shape{2, 2, 2}, Shape{2, 3, 2}},
      {Shape{3, 3}, Shape{2, 2}, Shape{2, 3, 2}},      {Shape{2, 3, 3}, Shape{2, 2}, Shape{3, 2}},
      {Shape{3, 3}, Shape{2, 4, 4}, Shape{2, 3, 4}},   {Shape{1, 1}, Shape{1, 1}, Shape{1, 1}},
      {Shape{0, 0}, Shape{2, 2}, Shape{0, 2}},         {Shape{2, 2}, Shape{0, 0}, Shape{2, 0}},
      {Shape{0, 2, 2}, Shape{0, 2, 2}, Shape{0, 2, 2}}};
  for (const auto& s : sylvester_shapes)
    cases.push_back({"sylvester", [](const Tensors& x) { return sylvester(x[0], x[1], x[2]); },
                     [=](DType d) {
                       return Tensors{matrix(s[0], 104, d), matrix(s[1], 105, d), input(s[2], 106, d)};
                     },
                     fields, residual([](const Hosts& in, const Host& X) { return in[0] * X + X * in[1] - in[2]; })});
}

void add_factorisations(Cases& cases) {
  for (const Shape& shape : oblongs) {
    const std::int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1], r = std::min(m, n);
    const Shape p = with(shape, m, m), l = with(shape, m, r), u = with(shape, r, n);
    const auto inputs = [=](DType d) { return Tensors{matrix(shape, 111, d, 3, m > 1 ? 1 : 0)}; };
    cases.push_back({"lu",
                     [](const Tensors& x) {
                       const Lu f = lu(x[0]);
                       return flat({f.P, f.L, f.U});
                     },
                     inputs, fields,
                     [=](const Tensors& in, const Tensor& out) {
                       const Tensors f = unflat(out, {p, l, u});
                       const Hosts A = host(in[0]), P = host(f[0]), L = host(f[1]), U = host(f[2]);
                       double error = 0;
                       for (std::size_t i = 0; i < A.size(); ++i) {
                         Host unit = below(L[i]);
                         for (std::int64_t j = 0; j < r; ++j) unit(j, j) = 1;
                         error =
                             std::max({error, (P[i] * L[i] * U[i] - A[i]).size(), (L[i] - unit).size(), L[i].size() - 1,
                                       below(U[i]).size(), (P[i] * P[i].adjoint() - Host::identity(m)).size()});
                         for (const Complex& v : P[i].x) error = std::max(error, std::abs(v * (v - 1.0)));
                       }
                       return error;
                     }});
    cases.push_back({"qr",
                     [](const Tensors& x) {
                       const Qr f = qr(x[0]);
                       return flat({f.Q, f.R});
                     },
                     inputs, fields,
                     [=](const Tensors& in, const Tensor& out) {
                       const Tensors f = unflat(out, {l, u});
                       const Hosts A = host(in[0]), Q = host(f[0]), R = host(f[1]);
                       double error = 0;
                       for (std::size_t i = 0; i < A.size(); ++i)
                         error = std::max({error, (Q[i] * R[i] - A[i]).size(),
                                           (Q[i].adjoint() * Q[i] - Host::identity(r)).size(),
                                           upper_with_positive_diagonal(R[i])});
                       return error;
                     }});
    // one result alone: the gradient of the others is not there
    cases.push_back({"lu, U alone", [](const Tensors& x) { return lu(x[0]).U * 1.0; }, inputs, fields});
    cases.push_back({"qr, Q alone", [](const Tensors& x) { return qr(x[0]).Q * 1.0; }, inputs, fields});
  }
  for (const Shape& shape : squares) {
    cases.push_back({"cholesky", [](const Tensors& x) { return cholesky(x[0]); },
                     [=](DType d) { return Tensors{matrix(shape, 112, d, 4)}; }, fields,
                     residual([](const Hosts& in, const Host& L) {
                       Host error = L * L.adjoint() - 0.5 * (in[0] + in[0].adjoint());
                       if (upper_with_positive_diagonal(L.adjoint()) > 0) error(0, 0) = 1;
                       return error;
                     })});
    const auto inputs = [=](DType d) { return Tensors{matrix(shape, 113, d, 2)}; };
    cases.push_back({"det", [](const Tensors& x) { return det(x[0]); }, inputs, fields,
                     [](const Tensors& in, const Tensor& out) {
                       const Hosts A = host(in[0]);
                       const auto d = elements(out);
                       double error = d.size() == A.size() ? 0 : INFINITY;
                       for (std::size_t i = 0; i < A.size(); ++i)
                         error = std::max(error, std::abs(d[i] - determinant(A[i])));
                       return error;
                     }});
    cases.push_back({"slogdet",
                     [](const Tensors& x) {
                       const SignAndLog d = slogdet(x[0]);
                       return flat({d.sign, d.log_abs});
                     },
                     inputs, fields,
                     [](const Tensors& in, const Tensor& out) {
                       const Hosts A = host(in[0]);
                       const auto d = elements(out);
                       double error = d.size() == 2 * A.size() ? 0 : INFINITY;
                       for (std::size_t i = 0; i < A.size(); ++i) {
                         const Complex sign = d[i], log_abs = d[A.size() + i];
                         error = std::max({error, std::abs(sign * std::exp(log_abs) - determinant(A[i])),
                                           std::abs(std::abs(sign) - 1)});
                       }
                       return error;
                     }});
  }
}

void add_exponentials(Cases& cases) {
  for (const Shape& shape : squares) {
    for (double size : {0.003, 0.1, 0.4, 1.0, 4.0}) {  // one for each order, and one that is scaled
      const auto inputs = [=](DType d) {
        return Tensors{input(shape, 121, d, -size, size), input(shape, 122, d, -2, 2)};
      };
      cases.push_back({"matrix_exp", [](const Tensors& x) { return matrix_exp(x[0]); },
                       [=](DType d) { return Tensors{inputs(d)[0]}; }, fields,
                       residual([](const Hosts& in, const Host& X) {
                         const Host exact = exponential_series(in[0], in[0]).first;
                         return 1 / std::max(1.0, exact.size()) * (X - exact);
                       }),
                       1e-8, 2e-5});
      cases.push_back({"matrix_exp_derivative", [](const Tensors& x) { return matrix_exp_derivative(x[0], x[1]); },
                       inputs, fields, residual([](const Hosts& in, const Host& X) {
                         const Host exact = exponential_series(in[0], in[1]).second;
                         return 1 / std::max(1.0, exact.size()) * (X - exact);
                       }),
                       1e-8, 2e-5});
    }
  }
  cases.push_back(
      {"matrix_exp_derivative", [](const Tensors& x) { return matrix_exp_derivative(x[0], x[1]); },
       [=](DType d) {
         return Tensors{input({3, 3}, 121, d, -1, 1), input({2, 3, 3}, 122, d, -2, 2)};
       },
       fields, residual([](const Hosts& in, const Host& X) { return X - exponential_series(in[0], in[1]).second; })});
}

void add_least_squares(Cases& cases) {
  const auto penrose = residual([](const Hosts& in, const Host& P) {
    const Host &A = in[0], AP = A * P, PA = P * A;
    Host worst(1, 1);
    worst(0, 0) =
        std::max({(AP * A - A).size(), (PA * P - P).size(), (AP - AP.adjoint()).size(), (PA - PA.adjoint()).size()});
    return worst;
  });
  for (const Shape& shape : oblongs)
    cases.push_back({"pinv", [](const Tensors& x) { return pinv(x[0]); },
                     [=](DType d) { return Tensors{matrix(shape, 131, d)}; }, fields, penrose});
  cases.push_back({"pinv of rank 2", [](const Tensors& x) { return pinv(matmul(x[0], x[1]), 1e-4); },
                   [](DType d) {
                     return Tensors{matrix({4, 2}, 132, d, 2), matrix({2, 3}, 133, d, 2)};
                   },
                   fields});
  const std::vector<std::pair<Shape, Shape>> shapes{{{4, 2}, {4, 3}},       {{2, 4}, {2, 3}},       {{3, 3}, {3, 1}},
                                                    {{2, 4, 3}, {2, 4, 2}}, {{2, 2, 3}, {2, 2, 2}}, {{4, 2}, {2, 4, 1}},
                                                    {{1, 1}, {1, 1}},       {{3, 0}, {3, 2}},       {{0, 3}, {0, 2}}};
  for (const auto& [a, b] : shapes)
    cases.push_back({"lstsq", [](const Tensors& x) { return lstsq(x[0], x[1]); },
                     [a = a, b = b](DType d) {
                       return Tensors{matrix(a, 134, d), input(b, 135, d)};
                     },
                     fields, residual([](const Hosts& in, const Host& X) {
                       const Host &A = in[0], AH = A.adjoint();
                       return A.m >= A.n ? AH * (A * X - in[1]) : X - AH * inverse_of(A * AH) * in[1];
                     })});
}

void add_orthogonal(Cases& cases) {
  for (const Shape& shape : squares) {
    const auto inputs = [=](DType d) { return Tensors{matrix(shape, 141, d, 1)}; };
    cases.push_back({"cayley", [](const Tensors& x) { return cayley(x[0]); }, inputs, fields,
                     residual([](const Hosts& in, const Host& W) {
                       const Host one = Host::identity(W.n);
                       return (one + in[0]) * W - (one - in[0]);
                     })});
    cases.push_back({"skew", [](const Tensors& x) { return skew(x[0]); }, inputs, fields,
                     residual([](const Hosts& in, const Host& S) {
                       const Host L = below(in[0].adjoint());
                       return S - (L.adjoint() - L);
                     })});
  }
  for (const Shape& d_shape : {Shape{3}, Shape{2, 3}})
    cases.push_back({"cayley", [](const Tensors& x) { return cayley(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{matrix({2, 3, 3}, 141, d, 1), input(d_shape, 142, d)};
                     },
                     fields});
  for (const Shape& places : {Shape{}, Shape{2}, Shape{2, 1}, Shape{0}}) {
    for (std::int64_t n : {0, 1, 2, 4}) {
      const Shape shape = places.insert(places.rank(), n * (n - 1) / 2);
      cases.push_back({"skew_from_vector", [=](const Tensors& x) { return skew_from_vector(x[0], n); },
                       [=](DType d) { return Tensors{input(shape, 143, d)}; }, fields,
                       listed([=](const std::vector<std::vector<Complex>>& in) {
                         std::vector<Complex> out;
                         for (std::size_t first = 0; first < static_cast<std::size_t>(places.numel()); ++first) {
                           Host S(n, n);
                           std::size_t k = first * static_cast<std::size_t>(n * (n - 1) / 2);
                           for (std::int64_t i = 0; i < n; ++i) {
                             for (std::int64_t j = i + 1; j < n; ++j) S(i, j) = in[0][k++];
                           }
                           S = S - S.adjoint();
                           out.insert(out.end(), S.x.begin(), S.x.end());
                         }
                         return out;
                       })});
    }
  }
  const auto product = [](const Host& U) {
    Host W = Host::identity(U.m);
    for (std::int64_t k = 0; k < U.n; ++k) {
      const Host u = U.column(k), square = u.adjoint() * u;
      W = W * (Host::identity(U.m) - 2.0 / square(0, 0) * (u * u.adjoint()));
    }
    return W;
  };
  for (const Shape& shape :
       {Shape{4, 2}, Shape{3, 3}, Shape{2, 4, 2}, Shape{2, 3}, Shape{1, 1}, Shape{3, 0}, Shape{0, 4, 2}})
    cases.push_back({"householder_product", [](const Tensors& x) { return householder_product(x[0]); },
                     [=](DType d) { return Tensors{matrix(shape, 144, d, 2)}; }, fields,
                     residual([=](const Hosts& in, const Host& W) { return W - product(in[0]); })});
  for (const Shape& x_shape : {Shape{5, 4}, Shape{2, 3, 4}, Shape{1, 4}, Shape{0, 4}})
    cases.push_back({"householder_apply", [](const Tensors& x) { return householder_apply(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{input(x_shape, 145, d), matrix({4, 2}, 144, d, 2)};
                     },
                     fields, residual([=](const Hosts& in, const Host& y) {
                       Host transposed = product(in[1]).adjoint();
                       for (Complex& v : transposed.x) v = std::conj(v);
                       return y - in[0] * transposed;
                     })});
  const auto is_polar = residual([](const Hosts& in, const Host& W) {
    const Host H = W.adjoint() * in[0];
    Host error = W.adjoint() * W - Host::identity(W.n);
    if (W.n == 0) return error;
    error(0, 0) += (H - H.adjoint()).size();
    for (std::int64_t k = 1; k <= W.n; ++k) {  // Sylvester's criterion: leading minors are positive
      Host leading(k, k);
      for (std::int64_t i = 0; i < k; ++i) {
        for (std::int64_t j = 0; j < k; ++j) leading(i, j) = H(i, j);
      }
      if (determinant(leading).real() <= 0) error(0, 0) += 1;
    }
    return error;
  });
  const auto call = [](const Tensors& x) { return polar_factor(x[0]); };
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 3}, Shape{4, 2}, Shape{2, 3, 3}, Shape{2, 4, 2}, Shape{1, 1},
                             Shape{0, 0}, Shape{3, 0}, Shape{0, 3, 2}})
    cases.push_back(
        {"polar_factor", call, [=](DType d) { return Tensors{matrix(shape, 146, d, 2)}; }, fields, is_polar});
  for (std::int64_t columns : {4, 2})  // all singular values are 1
    cases.push_back({"polar_factor", call,
                     [=](DType d) {
                       if (!is_differentiable(d)) return Tensors{input({4, columns}, 147, d)};
                       return Tensors{slice(householder_product(matrix({4, 2}, 147, d)), -1, 0, columns)};
                     },
                     fields, is_polar});
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  add_equations(cases);
  add_factorisations(cases);
  add_exponentials(cases);
  add_least_squares(cases);
  add_orthogonal(cases);
});

}  // namespace

}  // namespace reel::test
