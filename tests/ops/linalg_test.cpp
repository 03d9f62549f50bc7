// Linear algebra beyond the table of op cases: what is refused and in which words, identities and gradients of larger
// matrices, extreme exponentials, and orthogonality to the last digits.
#include <cmath>
#include <limits>

#include "engine/scan/scan.h"
#include "tests/support/host_matrix.h"

using namespace reel;
using namespace reel::test;

namespace {

const DType all_fields[] = {DType::f32, DType::f64, DType::c64, DType::c128};
double precision(DType d) { return real_of(d) == DType::f32 ? 1.2e-7 : 2.3e-16; }

/// Well conditioned: random with `shift` on the diagonal.
Tensor matrix(std::int64_t m, std::int64_t n, std::uint64_t seed, DType d = DType::f64, double shift = 0) {
  const std::int64_t r = std::max(m, n);
  const Tensor diagonal = slice(slice(eye(r, d), 0, 0, m), 1, 0, n);
  return random({m, n}, seed, d) * (1 / std::sqrt(static_cast<double>(r))) + diagonal * shift;
}
Tensor adjoint(const Tensor& x) { return conj(transpose(x)); }
/// How far the columns of W are from orthonormal.
double from_unitary(const Tensor& W) { return difference(matmul(adjoint(W), W), eye(W.dim(-1), W.dtype())); }
Tensor rotation(double angle) {
  return Tensor::from<double>({std::cos(angle), std::sin(angle), -std::sin(angle), std::cos(angle)}, {2, 2});
}

}  // namespace

TEST_CASE("what cannot be solved is refused, with sizes, pivots and the caller's line") {
  // Singular to the last bit, whether products are rounded before they are added or not.
  const Tensor singular = Tensor::from<double>({1, 2, 4, 2, 4, 8, 1, 0, 1}, {3, 3}), b = random({3, 1}, 1);
  const std::string text = error_of([&] { solve(singular, b); });
  CHECK(contains(text, "[solve] the 3x3 matrix is singular: pivot 1 is 0; got f64 (3, 3), f64 (3, 1)"));
  CHECK(contains(text, "tests/ops/linalg_test.cpp:"));
  CHECK(contains(error_of([&] { inverse(singular); }), "[inverse] the 3x3 matrix is singular"));
  CHECK(contains(error_of([&] {
                   inverse(stack({eye(3, DType::f64), singular}));
                 }),
                 "the 3x3 matrix at place 1 of 2 is singular"));
  CHECK(contains(error_of([&] { solve(Tensor::zeros({2, 2}), Tensor::zeros({2, 2})); }), "pivot 0 is 0"));
  const Tensor triangle = Tensor::from<double>({1, 5, 2, 0}, {2, 2}), two = random({2, 1}, 2);
  CHECK(contains(error_of([&] { triangular_solve(triangle, two); }),
                 "[triangular_solve] the 2x2 matrix is singular: element 1 of its diagonal is 0"));
  CHECK(error_of([&] { triangular_solve(triangle, two, {.unit_diagonal = true}); }).empty());
  const Tensor small = Tensor::from<double>({1, 0, 0, 1e-9}, {2, 2});
  CHECK(error_of([&] { triangular_solve(small, two); }).empty());
  const Tensor below = Tensor::from<double>({1, 0, 1e12, 1}, {2, 2});  // what is not on the diagonal does not count
  CHECK(error_of([&] { triangular_solve(below, two, {.tolerance = 1e-8}); }).empty());
  CHECK(contains(error_of([&] { triangular_solve(small, two, {.tolerance = 1e-8}); }),
                 "singular to working precision: element 1 of its diagonal is 1e-09, the largest is 1"));
  const Tensor indefinite = Tensor::from<double>({1, 2, 2, 1}, {2, 2});
  CHECK(contains(error_of([&] { cholesky(indefinite); }),
                 "[cholesky] the 2x2 matrix is not positive definite: its leading 2x2 part is not"));
  CHECK(contains(error_of([&] { cholesky(Tensor::zeros({3, 3})); }), "its leading 1x1 part is not"));
  const Tensor A = matrix(4, 4, 3), C = random({4, 4}, 4);
  CHECK(contains(error_of([&] { sylvester(A, -A, C); }), "[sylvester] A and -B share the eigenvalue"));
  CHECK(contains(error_of([&] { sylvester(A, -transpose(A), C); }), "so that there is no unique X"));
  CHECK(contains(error_of([&] {
                   sylvester(Tensor::zeros({2, 2}), Tensor::zeros({2, 2}), Tensor::zeros({2, 2}));
                 }),
                 "share the eigenvalue 0+0i"));
  const Tensor thin = random({4, 2}, 5), low = matmul(thin, random({2, 3}, 6));
  CHECK(contains(error_of([&] { polar_factor(low); }), "[polar_factor] the 4x3 matrix is not of full rank"));
  CHECK(contains(error_of([&] { polar_factor(transpose(low)); }),
                 "at least as many rows as columns are needed, got 3x4"));
  CHECK(
      contains(error_of([&] {
                 lstsq(low, random({4, 1}, 7));
               }),
               "[lstsq] A is singular to working precision, but must have full rank: got A f64 (4, 3), B f64 (4, 1)"));
  CHECK(contains(error_of([&] { lstsq(transpose(low), random({3, 1}, 7)); }), "singular to working precision"));
  CHECK(contains(error_of([&] {
                   lstsq(low, random({3, 1}, 7));
                 }),
                 "[lstsq] A and B must have the same number of rows, got 4 and 3"));
  {
    Tape tape;
    const Tensor R = sum(qr(low).R);  // has a value, but no derivative
    CHECK(contains(error_of([&] { grad(R, {low}); }), "singular to working precision"));
  }
  CHECK(contains(error_of([&] { cayley(-eye(3, DType::f64)); }), "singular: pivot 0 is 0"));
  CHECK(contains(error_of([&] {
                   householder_product(Tensor::from<double>({1, 0, 1, 0}, {2, 2}));
                 }),
                 "column 1 is 0, so it has no reflection"));
}

TEST_CASE("shapes and dtypes that do not fit are refused in words") {
  const Tensor A = random({3, 3}, 1), B = random({3, 2}, 2), v = random({3}, 3);
  for (const auto& f : std::vector<std::function<void(const Tensor&)>>{
           [](const Tensor& x) { inverse(x); }, [](const Tensor& x) { det(x); }, [](const Tensor& x) { slogdet(x); },
           [](const Tensor& x) { cholesky(x); }, [](const Tensor& x) { matrix_exp(x); },
           [](const Tensor& x) { cayley(x); }, [](const Tensor& x) { skew(x); }, [&](const Tensor& x) { solve(x, B); },
           [&](const Tensor& x) { sylvester(x, A, B); }}) {
    CHECK(contains(error_of([&] { f(B); }), "a square matrix is needed, got 3x2"));
    CHECK(contains(error_of([&] { f(v); }), "a matrix needs two axes or more"));
    CHECK(contains(error_of([&] { f(cast(A, DType::i32)); }), "i32"));
    CHECK(contains(error_of([&] { f(cast(A, DType::i32)); }), "tests/ops/linalg_test.cpp:"));
  }
  CHECK(contains(error_of([&] { solve(A, v); }), "Hint: reshape a vector to one column"));
  CHECK(contains(error_of([&] { solve(A, random({4, 2}, 2)); }), "[solve] A is 3x3, but B has 4 rows"));
  CHECK(contains(error_of([&] { solve(A, cast(B, DType::f32)); }), "all arguments must have one dtype"));
  CHECK(contains(error_of([&] {
                   solve(random({2, 3, 3}, 1), random({4, 3, 1}, 2));
                 }),
                 "leading axes differ: (4,) and (2,)"));
  CHECK(contains(error_of([&] { sylvester(A, A, B); }), "so C must be 3x3, got 3x2"));
  CHECK(contains(error_of([&] { matrix_exp_derivative(A, random({2, 2}, 1)); }), "got 3x3 and 2x2"));
  CHECK(contains(error_of([&] { skew_from_vector(v, 4); }),
                 "[skew_from_vector] a skew 4x4 matrix has 6 free elements; got f64 (3,)"));
  CHECK(contains(error_of([&] { cayley(A, random({2}, 1)); }), "[cayley] D needs one element for each column of A"));
}

TEST_CASE("what is not finite is refused, not passed on") {
  for (double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const Tensor x = Tensor::from<double>({1, 0, bad, 1}, {2, 2}), y = random({2, 2}, 1);
    for (const auto& f : std::vector<std::function<void()>>{
             [&] { solve(x, y); }, [&] { solve(eye(2, DType::f64), x); }, [&] { triangular_solve(x, y); },
             [&] { triangular_solve(y, x, {.upper = true}); }, [&] { inverse(x); }, [&] { sylvester(x, y, y); },
             [&] { sylvester(y, x, y); }, [&] { sylvester(y, y, x); }, [&] { lu(x); }, [&] { qr(x); },
             [&] { cholesky(x); }, [&] { det(x); }, [&] { slogdet(x); }, [&] { matrix_exp(x); },
             [&] { matrix_exp_derivative(y, x); }, [&] { pinv(x); }, [&] { polar_factor(x); }, [&] { cayley(x); }})
      CHECK(contains(error_of(f), "not finite"));
    CHECK(error_of([&] { triangular_solve(x, y, {.upper = true}); }).empty());  // what is not read does no harm
  }
  const Tensor tiny = Tensor::from<double>({1e-300, 0, 0, 1e-300}, {2, 2}),
               large = Tensor::full({2, 2}, 1e200, DType::f64);
  CHECK(contains(error_of([&] { solve(tiny, large); }), "the result overflows"));
  CHECK(contains(error_of([&] { triangular_solve(tiny, large); }), "the result overflows"));
  const Tensor small = eye(2, DType::f64) * 1e-290;  // LAPACK scales X down so that it does not overflow on the way
  CHECK(contains(error_of([&] { sylvester(small, small, large * 1e-170); }), "the result overflows"));
  CHECK(difference(sylvester(small, small, large * 1e-240) * 1e-250, Tensor::full({2, 2}, 0.5, DType::f64)) < 1e-15);
}

TEST_CASE("the leading axes of linear equations broadcast") {
  const Tensor A = matrix(3, 3, 1, DType::f64, 1.5), shift = random({2, 1, 1, 1}, 2, DType::f64);
  const Tensor As = A + shift * 0.1, B = random({4, 3, 2}, 3, DType::f64), X = solve(As, B),
               Y = triangular_solve(As, B);
  CHECK(X.shape() == Shape{2, 4, 3, 2});
  CHECK(difference(matmul(As, X), expand(B, {2, 4, 3, 2})) < 1e-12);
  CHECK(difference(matmul(tril(As), Y), expand(B, {2, 4, 3, 2})) < 1e-12);
}

TEST_CASE("solutions of larger systems: residuals to working precision in every dtype") {
  for (DType d : all_fields) {
    CAPTURE(name_of(d));
    const double limit = 200 * precision(d);
    for (std::int64_t n : {64, 100}) {
      const Tensor A = matrix(n, n, 1, d, 1.5), B = random({n, 7}, 2, d), T = matrix(n, n, 3, d, 1.5);
      CHECK(difference(matmul(A, solve(A, B)), B) < limit);
      CHECK(difference(matmul(adjoint(A), solve(A, B, {.adjoint = true})), B) < limit);
      CHECK(difference(matmul(inverse(A), A), eye(n, d)) < limit);
      CHECK(difference(matmul(tril(T), triangular_solve(T, B)), B) < limit);
      CHECK(difference(matmul(adjoint(triu(T)), triangular_solve(T, B, {.upper = true, .adjoint = true})), B) < limit);
      const Tensor S = matrix(20, 20, 4, d, 1.5), C = random({n, 20}, 5, d), X = sylvester(A, S, C);
      CHECK(difference(matmul(A, X) + matmul(X, S), C) < limit);
    }
  }
}

TEST_CASE("factors of larger matrices multiply to the matrix, and are what they should be") {
  for (DType d : all_fields) {
    CAPTURE(name_of(d));
    const double limit = 100 * precision(d);
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{96, 96}, {128, 50}, {50, 128}}) {
      const Tensor A = matrix(m, n, 1, d);
      const auto [P, L, U] = lu(A);
      CHECK(difference(matmul(P, matmul(L, U)), A) < limit);
      const auto [Q, R] = qr(A);
      CHECK(difference(matmul(Q, R), A) < limit);
      CHECK(from_unitary(Q) < limit);
      CHECK(difference(triu(R), R) == 0);
      for (const std::complex<double>& r : elements(diag(R))) CHECK((r.imag() == 0 && r.real() >= 0));
      const Tensor X = pinv(A);
      CHECK(difference(matmul(A, matmul(X, A)), A) < limit);
      const Tensor B = random({m, 3}, 2, d);
      CHECK(difference(matmul(A, lstsq(A, B)), matmul(A, matmul(X, B))) < 5 * limit);
      CHECK(difference(lstsq(A, A), matmul(X, A)) < 20 * limit);
    }
    const Tensor M = matrix(96, 96, 3, d), H = matmul(M, adjoint(M)) + eye(96, d);
    const Tensor L = cholesky(H);
    CHECK(difference(matmul(L, adjoint(L)), H) < limit);
    CHECK(difference(tril(L), L) == 0);
  }
}

TEST_CASE("qr gives back the factors that a matrix was made of: they are unique") {
  const Tensor Q = qr(matrix(6, 4, 1, DType::c128)).Q, R = qr(matrix(4, 4, 2, DType::c128)).R;
  const Qr again = qr(matmul(Q, R));
  CHECK(difference(again.Q, Q) < 1e-14);
  CHECK(difference(again.R, R) < 1e-14);
}

TEST_CASE("determinants: products, extremes, and a singular matrix") {
  for (DType d : all_fields) {
    const Tensor A = matrix(40, 40, 1, d, 1), B = matrix(40, 40, 2, d, 1);
    CHECK(difference(det(matmul(A, B)), det(A) * det(B)) < 500 * precision(d));
    const auto [sign, log_abs] = slogdet(A);
    CHECK(difference(sign * cast(exp(log_abs), d), det(A)) < 500 * precision(d));
  }
  const Tensor big = eye(200, DType::f64) * 100;
  CHECK(contains(error_of([&] { det(big); }),
                 "[det] the determinant of the 200x200 matrix overflows: its logarithm is 921"));
  CHECK(contains(error_of([&] { det(big); }), "Hint: use slogdet"));
  CHECK(slogdet(big).log_abs.item() == doctest::Approx(200 * std::log(100)).epsilon(1e-14));
  // Pivots whose product overflows on the way and comes back: 1e200^2 1e-300.
  CHECK(det(diag_embed(Tensor::from<double>({1e200, 1e200, 1e-300}, {3}))).item() == doctest::Approx(1e100));
  const Tensor swap = Tensor::from<double>({0, 1, 1, 0}, {2, 2});
  CHECK(det(swap).item() == -1);
  const Tensor singular = Tensor::from<double>({1, 2, 2, 4}, {2, 2});
  Tape tape;
  const Tensor zero = det(singular);
  CHECK(zero.item() == 0);
  CHECK(slogdet(singular).sign.item() == 0);
  CHECK(slogdet(singular).log_abs.item() == -INFINITY);
  CHECK(contains(error_of([&] { grad(zero, {singular}); }), "[inverse] the 2x2 matrix is singular"));
}

TEST_CASE("gradients of 24x24 matrices, and gradients of gradients") {
  const std::int64_t n = 24;
  const std::vector<std::pair<const char*, TensorFunction>> functions{
      {"solve", [](const Tensors& x) { return solve(x[0], x[1]); }},
      {"inverse", [](const Tensors& x) { return inverse(x[0]); }},
      {"triangular_solve", [](const Tensors& x) { return triangular_solve(x[0], x[1]); }},
      {"sylvester", [](const Tensors& x) { return sylvester(x[0], x[0], x[1]); }},
      {"lu",
       [](const Tensors& x) {
         const Lu f = lu(x[0]);
         return f.L + f.U;
       }},
      {"qr",
       [](const Tensors& x) {
         const Qr f = qr(x[0]);
         return f.Q + f.R;
       }},
      {"cholesky", [](const Tensors& x) { return cholesky(matmul(x[0], adjoint(x[0]))); }},
      {"slogdet", [](const Tensors& x) { return slogdet(x[0]).log_abs; }},
      {"matrix_exp", [](const Tensors& x) { return matrix_exp(x[0]); }},
      {"pinv", [](const Tensors& x) { return pinv(slice(x[0], 1, 0, 10)); }},
      {"lstsq", [](const Tensors& x) { return lstsq(slice(x[0], 1, 0, 10), x[1]); }},
      {"lstsq, wide", [](const Tensors& x) { return lstsq(slice(x[0], 0, 0, 10), slice(x[1], 0, 0, 10)); }},
      {"cayley", [](const Tensors& x) { return cayley(skew(x[0])); }},
      {"householder", [](const Tensors& x) { return householder_apply(x[1], slice(x[0], 1, 0, 8)); }},
      {"polar_factor", [](const Tensors& x) { return polar_factor(x[0]); }}};
  for (DType d : {DType::f64, DType::c128}) {
    const Tensors in{matrix(n, n, 1, d, 2), random({n, n}, 2, d)};
    for (const auto& [name, f] : functions) {
      CAPTURE(std::string(name));
      CAPTURE(name_of(d));
      const GradErrors e = grad_errors(f, in, 300);
      CHECK(e.first < 1e-8);
      CHECK(e.second < 1e-8);
    }
  }
}

TEST_CASE("exponentials: zero, nilpotent, diagonal, symmetric, large, and too large") {
  CHECK(difference(matrix_exp(Tensor::zeros({5, 5}, DType::f64)), eye(5, DType::f64)) == 0);
  // A^3 = 0: I + A + A^2 / 2
  const Tensor nilpotent = Tensor::from<double>({0, 3, -2, 0, 0, 5, 0, 0, 0}, {3, 3});
  CHECK(difference(matrix_exp(nilpotent), eye(3, DType::f64) + nilpotent + 0.5 * matmul(nilpotent, nilpotent)) < 1e-15);
  // each of 27 squarings doubles the rounding error of the diagonal; what is 0 below it stays 0
  const Tensor large = matrix_exp(nilpotent * 1e8);
  CHECK(difference(large, eye(3, DType::f64) + nilpotent * 1e8 + 0.5e16 * matmul(nilpotent, nilpotent)) < 1e-7);
  CHECK(difference(triu(large), large) == 0);
  const Tensor x = Tensor::from<double>({-700, -30, -1, 0, 1, 300, 700}, {7});
  const auto exact = exp(x).values<double>(), got = diag(matrix_exp(diag_embed(x))).values<double>();
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK(got[i] == doctest::Approx(exact[i]).epsilon(1e-12));
  // Q diag(e) Q^T of a reflection's Q
  for (double size : {1.0, 10.0, 100.0}) {
    const Tensor Q = householder_product(random({32, 5}, 1)), e = random({32}, 2, DType::f64, -size, size);
    const Tensor A = matmul(Q * e, Q, {.transpose_b = true}), E = matmul(Q * exp(e), Q, {.transpose_b = true});
    CAPTURE(size);
    const double scale = max(abs(E)).item();
    CHECK(difference(matrix_exp(A) * (1 / scale), E * (1 / scale)) < 1e-13 * std::max(1.0, size));
  }
  for (double size : {0.001, 0.01, 0.1, 0.5, 2.0, 10.0}) {  // against the series in long double
    for (DType d : {DType::f64, DType::c128}) {
      const Tensor A = random({12, 12}, 3, d) * (size / 6), E = random({12, 12}, 4, d);
      const auto [value, moved] = exponential_series(host(A)[0], host(E)[0]);
      CAPTURE(size);
      CHECK((host(matrix_exp(A))[0] - value).size() < 1e-14 * std::max(1.0, value.size()));
      CHECK((host(matrix_exp_derivative(A, E * 1e9))[0] - 1e9 * moved).size() < 1e-5 * std::max(1.0, moved.size()));
      CHECK((host(matrix_exp_derivative(A, E * 1e-9))[0] - 1e-9 * moved).size() < 1e-23 * std::max(1.0, moved.size()));
      CHECK((host(matrix_exp(cast(A, d == DType::f64 ? DType::f32 : DType::c64)))[0] - value).size() <
            1e-5 * std::max(1.0, value.size()));
    }
  }
  // rotations by many turns
  for (double angle : {3.0, 100.0, 1e4})
    CHECK(difference(matrix_exp(Tensor::from<double>({0, angle, -angle, 0}, {2, 2})), rotation(angle)) < 1e-14 * angle);
  CHECK(contains(error_of([] { matrix_exp(eye(3, DType::f64) * 1000); }),
                 "[matrix_exp] the exponential of a matrix of 1-norm 1e+03 overflows"));
  CHECK(contains(error_of([] { matrix_exp(eye(3) * 100); }), "overflows"));
  CHECK(difference(matrix_exp(eye(3, DType::f64) * -1e300), Tensor::zeros({3, 3}, DType::f64)) == 0);
}

TEST_CASE("each matrix of a batch is what it is alone, however different their norms") {
  const Tensor A = random({4, 5, 5}, 1) * reshape(Tensor::from<double>({1e-3, 0.1, 3, 30}, {4}), {4, 1, 1});
  const Tensor all = matrix_exp(A);
  for (std::int64_t i = 0; i < 4; ++i) CHECK(difference(at(all, i), matrix_exp(at(A, i))) == 0);
}

TEST_CASE("orthogonal to the last digits") {
  for (DType d : all_fields) {
    CAPTURE(name_of(d));
    const double limit = d == DType::f64 || d == DType::c128 ? 1e-12 : 1e-4;
    for (double size : {0.1, 1.0, 10.0}) {
      CAPTURE(size);
      const Tensor S = skew(random({128, 128}, 1, d)) * size;
      CHECK(difference(adjoint(S), -S) == 0);
      CHECK(from_unitary(cayley(S)) < limit);
      CHECK(from_unitary(matrix_exp(S)) < limit);
      CHECK(from_unitary(householder_product(random({128, 40}, 2, d) * size)) < limit);
      CHECK(from_unitary(polar_factor(random({128, 128}, 3, d) * size)) < limit);
      CHECK(from_unitary(polar_factor(random({128, 30}, 3, d) * size)) < limit);
    }
    const Tensor W = householder_product(random({128, 128}, 4, d));
    CHECK(difference(polar_factor(W), W) < limit);
    const Tensor x = random({9, 128}, 5, d), U = random({128, 16}, 6, d);
    CHECK(difference(householder_apply(x, U), matmul(x, householder_product(U), {.transpose_b = true})) < limit);
  }
  const Tensor v = random({128 * 127 / 2}, 7), signs = Tensor::from<double>({1, -1}, {2});
  const Tensor D = reshape(expand(reshape(signs, {1, 2}), {64, 2}), {128});
  CHECK(from_unitary(cayley(skew_from_vector(v, 128), D)) < 1e-12);
  const Tensor A = skew_from_vector(v, 128);
  CHECK(difference(matmul(A + eye(128, DType::f64), cayley(A, D)), (eye(128, DType::f64) - A) * D) < 1e-12);
}

TEST_CASE("pseudo-inverse: rank and rcond") {
  const Tensor A = diag_embed(Tensor::from<double>({4, 2, 1e-6}, {3}));
  CHECK(difference(pinv(A), diag_embed(Tensor::from<double>({0.25, 0.5, 1e6}, {3}))) < 1e-15);
  CHECK(difference(pinv(A, 1e-5), diag_embed(Tensor::from<double>({0.25, 0.5, 0}, {3}))) < 1e-15);
  const Tensor large = diag_embed(Tensor::from<double>({4e3, 2e3, 1e-3}, {3}));  // rcond is relative to 4e3
  CHECK(difference(pinv(large, 1e-5), diag_embed(Tensor::from<double>({0.25e-3, 0.5e-3, 0}, {3}))) < 1e-15);
  CHECK(difference(pinv(Tensor::zeros({3, 2}, DType::f64)), Tensor::zeros({2, 3}, DType::f64)) == 0);
  const Tensor low = matmul(random({40, 5}, 1), random({5, 30}, 2)), P = pinv(low);
  CHECK(difference(matmul(low, matmul(P, low)), low) < 1e-13);
}

TEST_CASE("inside a time loop: what depends on parameters alone runs once, the rest as the plain loop") {
  const Tensor h = random({2, 4}, 1), xs = random({5, 2, 4}, 2), A = random({4, 4}, 3), U = random({4, 2}, 4);
  const auto run = [&](bool unrolled, const Step& step, const Tensors& wrt, Tensors* out) {
    Tape tape;
    const ScanResult r = unrolled ? unroll(step, {h}, {xs}) : scan(step, {h}, {xs});
    const Tensor loss = sum(square(r.last[0])) + sum(r.ys[0]);
    *out = grad({loss}, wrt);
    out->push_back(loss);
    std::size_t nodes = 0;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (std::string(tape.node(i).op->traits.name) == "scan")
        nodes = tape.node(i).attrs.as<Scan>().loop().body.nodes.size();
    }
    return nodes;
  };
  const auto hold = [&](const Step& step, const Tensors& wrt) {
    Tensors plain, fast;
    run(true, step, wrt, &plain);
    const std::size_t nodes = run(false, step, wrt, &fast);
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(difference(plain[i], fast[i]) < 1e-13);
    return nodes;
  };
  const auto next = [](const Tensor& y) { return Next{{y}, {y}}; };
  const auto recurrent = [&](const std::function<Tensor()>& W) -> Step {
    return [&, W](const Tensors& s, const Tensors& x) { return next(tanh(matmul(s[0], W()) + x[0])); };
  };
  CHECK(hold(recurrent([&] { return cayley(skew(A)); }), {A, h, xs}) == 3);
  CHECK(hold(recurrent([&] { return matrix_exp(skew(A)); }), {A, h, xs}) == 3);
  CHECK(hold(recurrent([&] { return qr(A).Q; }), {A, h, xs}) == 3);
  CHECK(hold(recurrent([&] { return polar_factor(A); }), {A, h, xs}) == 3);
  const Step reflect = [&](const Tensors& s, const Tensors& x) {
    return next(tanh(householder_apply(s[0], U) + x[0]));
  };
  CHECK(hold(reflect, {U, h, xs}) == 5);  // two products, a difference, a sum, tanh
  // matrices that differ from step to step
  const Step solving = [&](const Tensors& s, const Tensors& x) {
    const Tensor M = matmul(x[0], x[0], {.transpose_a = true}) + 2 * eye(4, DType::f64);
    const Tensor R = qr(M).R;
    return next(tanh(transpose(solve(M, transpose(s[0])))) + 0.1 * matmul(x[0], inverse(M)) +
                0.1 * transpose(solve(A, transpose(x[0]))) + 0.1 * matmul(s[0], R) + 0.1 * matmul(x[0], matrix_exp(A)));
  };
  hold(solving, {A, h, xs});
}
