// Matrices of the largest and the smallest numbers, whose results a dtype holds though products on the way may not.
#include <cmath>
#include <limits>

#include "ops/functors/linalg.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

Tensor matrix(const std::vector<double>& x, DType d = DType::f64) {
  const auto n = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(x.size()))));
  return cast(Tensor::from(std::span<const double>(x), {n, n}), d);
}
Tensor column(const std::vector<double>& x, DType d = DType::f64) {
  return cast(Tensor::from(std::span<const double>(x), {std::ssize(x), 1}), d);
}
std::vector<double> values(const Tensor& x) { return cast(real(x), DType::f64).values<double>(); }
void near(const Tensor& got, const std::vector<double>& wanted, double tolerance) {
  const auto y = values(got);
  REQUIRE(y.size() == wanted.size());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::abs(y[i] - wanted[i]) <= tolerance * std::abs(wanted[i]));
}

/// H(u) = I - 2 u u^T / |u|^2 for u = (1, 2, 2)
const std::vector<double> reflection{7.0 / 9,  -4.0 / 9, -4.0 / 9, -4.0 / 9, 1.0 / 9,
                                     -8.0 / 9, -4.0 / 9, -8.0 / 9, 1.0 / 9};

}  // namespace

TEST_CASE("subnormal pivots") {  // their inverses are infinite
  for (const DType d : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    CAPTURE(name_of(d));
    const bool single = real_of(d) == DType::f32;
    const double tiny = single ? std::ldexp(1, -135) : std::ldexp(1, -1030), few = single ? 1e-6 : 1e-14;
    const double log_tiny = (single ? -135 : -1030) * std::log(2.0);
    const Tensor diagonal = matrix({tiny, 0, 0, 0, 1, 0, 0, 0, 2}, d);
    near(slogdet(diagonal).sign, {1}, 0);
    near(slogdet(diagonal).log_abs, {log_tiny + std::log(2.0)}, few);
    near(det(diagonal), {2 * tiny}, 0);
    const Tensor full = matrix({tiny, tiny / 2, tiny / 4, tiny}, d);  // determinant 7/8 tiny^2
    near(slogdet(full).log_abs, {2 * log_tiny + std::log(7.0 / 8)}, few);
    near(slogdet(matrix({0, tiny, tiny, 0}, d)).sign, {-1}, 0);
    const Lu f = lu(diagonal);
    near(f.U, values(diagonal), 0);
    near(f.L, values(eye(3)), 0);
    near(lu(full).L, {1, 0, 0.25, 1}, 0);
    near(matmul(f.P, matmul(f.L, f.U)), values(diagonal), 0);
    near(solve(diagonal, column({tiny, 3, 4}, d)), {1, 3, 2}, few);
    near(solve(full, column({tiny, tiny}, d)), {4.0 / 7, 6.0 / 7}, 1e-3);
    near(solve(full, column({tiny, tiny}, d), {.adjoint = true}), {6.0 / 7, 4.0 / 7}, 1e-3);
    near(triangular_solve(full, column({tiny, tiny}, d)), {1, 0.75}, few);
    near(triangular_solve(full, column({tiny, tiny}, d), {.adjoint = true}), {0.75, 1}, few);
  }
}

TEST_CASE("large pivots: their product, and sums of them") {
  near(det(matrix({1.5, 0, 0, 0, 1.7e308, 0, 0, 0, 1e-308})), {2.55}, 1e-14);
  const Tensor A = matrix({1e308, 1e308, -1e308, 1e308});  // the second pivot is 2e308
  near(slogdet(A).log_abs, {std::log(2.0) + 2 * 308 * std::log(10.0)}, 1e-14);
  near(solve(A, column({1e308, 0})), {0.5, 0.5}, 1e-14);
  CHECK(contains(error_of([&] { lu(A); }), "[lu] the result overflows"));
  const Tensor singular = matrix({1e-310, 2e-310, 1e-310, 2e-310});
  CHECK(contains(error_of([&] { solve(singular, column({1, 1})); }), "[solve] the 2x2 matrix is singular"));
}

TEST_CASE("symmetric matrices of the largest numbers") {
  near(cholesky(matrix({1e308})), {1e154}, 1e-14);
  near(eigh(matrix({1.7e308})).values, {1.7e308}, 1e-14);
}

TEST_CASE("eigenvalues and singular values that overflow are errors") {
  const Tensor A = matrix({1e308, 1e308, 1e308, 1e308});  // the largest one is 2e308
  CHECK(contains(error_of([&] { eig(A); }), "[eig] eigenvalues of a matrix (2, 2) overflow"));
  CHECK(contains(error_of([&] { eigvals(A); }), "[eig] eigenvalues of a matrix (2, 2) overflow"));
  CHECK(contains(error_of([&] { eigh(A); }), "[eigh] eigenvalues of a matrix (2, 2) overflow"));
  CHECK(contains(error_of([&] { svd(A); }), "[svd] singular values of a matrix (2, 2) overflow"));
  CHECK(contains(error_of([&] { schur(A); }), "[schur] elements of the Schur form of a matrix (2, 2) overflow"));
  CHECK(contains(error_of([&] { pinv(A); }), "[pinv] the singular values of a 2x2 matrix overflow"));
  CHECK_MESSAGE(contains(error_of([&] { spectral_radius(A); }), "overflow"), error_of([&] { spectral_radius(A); }));
}

TEST_CASE("exponentials of matrices far from normal: as accurate as those of others") {
  const double e = std::exp(1.0);
  for (const DType d : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    const bool single = real_of(d) == DType::f32;
    for (const double large : {1e4, 1e8, 1e15, 1e17, 1e35, 1e160, 1e300}) {
      if (single && large > 1e38) continue;
      CAPTURE(name_of(d));
      CAPTURE(large);
      const double few = single ? 1e-6 : 1e-14;
      near(matrix_exp(matrix({1, large, 0, -1}, d)), {e, large * std::sinh(1.0), 0, 1 / e}, few);
      near(matrix_exp(matrix({1, large, 0, 1}, d)), {e, large * e, 0, e}, few);
    }
  }
  // by mpmath, with 80 digits
  near(matrix_exp(matrix({2, 1e6, -3e8, 0, -1, 2e6, 0, 0, 0.5})),
       {7.3890560989306502, 2340392.2192530693, 1980848821346.2811, 0, 0.36787944117144232, 1707789.1060382478, 0, 0,
        1.6487212707001281},
       1e-14);
  const Tensor A = matrix({1, 1e8, 0, -1}), E = matrix({0.25, -2, 0.5, 0.75});
  for (const DType d : {DType::f64, DType::f32})
    near(matrix_exp_derivative(cast(A, d), cast(E, d)),
         {38577016.549951552, 919698652491677.11, 0.58760059682190073, 20183044.087718559},
         d == DType::f64 ? 1e-13 : 1e-6);
}

TEST_CASE("exponentials of matrices with a large element beside others") {
  const double c = std::cos(30.0), s = std::sin(30.0), e20 = std::exp(20.0);
  for (const DType d : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    const bool single = real_of(d) == DType::f32;
    for (const double large : {1e20, 1e30, 1e100, 1e200}) {
      if (single && large > 1e30) continue;
      CAPTURE(name_of(d));
      CAPTURE(large);
      const double few = single ? 1e-6 : 1e-12;
      near(matrix_exp(matrix({0, large, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 0, 0, -30, 0}, d)),
           {1, large, 0, 0, 0, 1, 0, 0, 0, 0, c, s, 0, 0, -s, c}, few);
      near(matrix_exp(matrix({0, large, 0, 0, 0, 0, 0, 0, 60}, d)), {1, large, 0, 0, 1, 0, 0, 0, std::exp(60.0)}, few);
      near(matrix_exp(matrix({20, large, 0, -1}, d)), {e20, (e20 - std::exp(-1)) / 21 * large, 0, std::exp(-1)}, few);
    }
  }
  CHECK(contains(error_of([] {
                   matrix_exp(matrix({500, 1e200, 0, -1}));
                 }),
                 "[matrix_exp] the exponential of a matrix"));
  const Tensor A = matrix({0, 1e200, 0, 0, 0, 0, 0, 0, 40});
  Tape tape;
  const auto last = values(grad(sum(matrix_exp(A) * matrix({0, 0, 0, 0, 0, 0, 0, 0, 1})), {A})[0]);
  CHECK(last[8] == doctest::Approx(std::exp(40.0)).epsilon(1e-12));
  const std::string overflow = error_of([] { matrix_exp_derivative(matrix({1, 0, 1e250, -1}), matrix({1, 1, 1, 1})); });
  CHECK_MESSAGE(contains(overflow, "[matrix_exp_derivative] the derivative of the exponential overflows"), overflow);
}

TEST_CASE("exponentials in other units: exp(D^-1 A D) = D^-1 exp(A) D") {
  for (std::uint64_t draw = 16; draw <= 75; ++draw) {  // of 15, the pivots of solve() are those of the units
    const Tensor some = uniform({6, 6}, 0, 1, draw, 1, DType::f64) < 0.5;
    const Tensor A = where(some, uniform({6, 6}, -20, 20, draw, 2, DType::f64), 0);
    const Tensor units = pow(2.0, round(uniform({6}, -100, 100, draw, 3, DType::f64))), rows = reshape(units, {6, 1});
    const Tensor wanted = matrix_exp(A);
    CHECK(difference(rows * matrix_exp(A / rows * units) / units, wanted) < 1e-11 * max(abs(wanted)).item());
  }
}

TEST_CASE("exponentials: powers that are small by cancellation, and results that overflow") {
  // A^2 = 0, which |A| does not show, so that there are squarings. Rounding one of the last, of elements a / 4, and
  // multiplying the error by A / 2 and A / 4 gives up to 1e-16 a^3 / 16 of the result.
  const Tensor A = matrix({1e4, -1e4, 1e4, -1e4});
  near(matrix_exp(A), values(eye(2, DType::f64) + A), 1e-5);
  const Tensor steps = matrix({0, 1e200, 0, 0, 0, 1e200, 0, 0, 0});
  CHECK(contains(error_of([&] { matrix_exp(steps); }), "[matrix_exp] the exponential of a matrix of 1-norm 1e+200"));
  CHECK(contains(error_of([&] { matrix_exp(matrix({1, 3e38, 0, 2}, DType::f32)); }), "of 1-norm 3e+38 overflows"));
}

TEST_CASE("reflections by the shortest and the longest columns") {
  const Tensor G = matrix({0, 1, 2, 3, 4, 5, 6, 7, 8}), unit = column({1, 2, 2});
  const auto turned = [&](const Tensor& u) { return sum(householder_product(u) * cast(G, u.dtype())); };
  const auto gradient = [&](const Tensor& u) {
    Tape tape;
    return values(grad(turned(u), {u})[0]);
  };
  for (const DType d : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    const bool single = real_of(d) == DType::f32;
    const double few = single ? 1e-6 : 1e-14;
    const auto wanted = gradient(unit);
    for (const int e :
         single ? std::vector{-147, -100, -63, -51, 49, 51, 66, 125} : std::vector{-1070, -538, 538, 1020}) {
      CAPTURE(name_of(d));
      CAPTURE(e);
      const Tensor u = cast(unit, d) * std::ldexp(1, e / 2) * std::ldexp(1, e - e / 2);
      near(householder_product(u), reflection, few);
      near(householder_apply(eye(3, d), u), reflection, few);
      if (e < (single ? -120 : -1000)) continue;  // gradients overflow
      const auto found = gradient(u);
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(std::ldexp(found[i], e) == doctest::Approx(wanted[i]).epsilon(10 * few));
    }
  }
  using Z = std::complex<float>;  // of which an absolute value overflows
  const Tensor long_one = Tensor::from<Z>({Z(3e38F, 3e38F), Z(3e38F)}, {2, 1});
  const Tensor short_one = Tensor::from<Z>({Z(1, 1), Z(1)}, {2, 1});
  CHECK(difference(householder_product(long_one), householder_product(short_one)) < 1e-6);
  // columns of different lengths, in a batch
  const Tensor U = random({2, 6, 3}, 1), lengths = Tensor::from<double>({1e-300, 1, 1e300}, {3});
  CHECK(difference(householder_product(U * lengths), householder_product(U)) < 1e-14);
  const Tensor with_zero = concat({U, zeros_like(slice(U, -1, 0, 1))}, -1);
  CHECK(contains(error_of([&] { householder_product(with_zero); }),
                 "[householder_product] column 3 is 0, so it has no reflection; got f64 (2, 6, 4)"));
  CHECK(contains(error_of([&] {
                   householder_apply(column({1, 2}), matrix({1, INFINITY, 1, 1}));
                 }),
                 "[householder_apply] column 1 has elements that are not finite"));
}

TEST_CASE("spectral radii of the smallest and the largest numbers") {
  const Tensor A = random({4, 4}, 1), G = random({4, 4}, 2);
  const auto gradient = [&](const Tensor& x) {
    Tape tape;
    return cast(grad(spectral_radius(x), {x})[0], DType::f64);
  };
  for (const DType d : {DType::f32, DType::f64}) {
    const double few = d == DType::f32 ? 1e-5 : 1e-13;
    for (const int e : d == DType::f32 ? std::vector{-120, -100, 0, 120} : std::vector{-1000, -960, 0, 1000}) {
      CAPTURE(name_of(d));
      CAPTURE(e);
      const Tensor x = cast(A * std::ldexp(1, e), d);
      CHECK(std::ldexp(spectral_radius(x).item(), -e) == doctest::Approx(spectral_radius(A).item()).epsilon(few));
      CHECK(difference(gradient(x), gradient(A)) < few);
    }
  }
  const auto times = [](double of, const std::vector<double>& x, DType d) {
    return spectral_radius(matrix(x, d)).item() / of;
  };
  CHECK(times(1e-30, {1e-30, 1e13, 0, 3e-31}, DType::f32) == doctest::Approx(1).epsilon(1e-6));
  CHECK(times(1e-5, {1e-5, 1e38, 0, 3e-6}, DType::f32) == doctest::Approx(1).epsilon(1e-6));
  CHECK(times(1e-10, {1e-10, 1e308, 0, 3e-11}, DType::f64) == doctest::Approx(1).epsilon(1e-14));
  const Tensor large = random({256, 256}, 3) * 1e-300;  // with columns that are carried over
  const auto columns = leading_columns(256);
  for (int call = 0; call < 3; ++call)
    CHECK(warm_spectral_radius(large, columns).item() == spectral_radius(large).item());
}

TEST_CASE("sylvester with the smallest and the largest numbers") {
  const Tensor A = random({4, 4}, 1) + 4 * eye(4, DType::f64), B = random({3, 3}, 2) + 4 * eye(3, DType::f64),
               C = random({4, 3}, 3), X = sylvester(A, B, C);
  for (const DType d : {DType::f32, DType::f64}) {
    const double few = d == DType::f32 ? 1e-5 : 1e-13;
    for (const int e : d == DType::f32 ? std::vector{-120, -100, 0, 120} : std::vector{-1010, -980, 0, 1000}) {
      CAPTURE(name_of(d));
      CAPTURE(e);
      const auto times = [&](const Tensor& x, int exponent) { return cast(x * std::ldexp(1, exponent), d); };
      CHECK(difference(cast(sylvester(times(A, e), times(B, e), times(C, e)), DType::f64), X) < few);
      const Tensor apart = sylvester(times(A, e), times(B, e), times(C, 0));
      CHECK(difference(cast(apart, DType::f64) * std::ldexp(1, e), X) < few);
      // A batch, of which one matrix is ordinary; B is shared.
      const Tensor both = sylvester(stack({times(A, e), times(A, 0)}), times(B, e), times(C, 0));
      CHECK(difference(at(both, 0), apart) == 0);
      CHECK(difference(at(both, 1), sylvester(times(A, 0), times(B, e), times(C, 0))) == 0);
    }
  }
  const auto of_diagonal = [](double a, double b, double c, DType d) {
    return values(sylvester(matrix({a, 0, 0, b}, d), matrix({1}, d), column({1, c}, d)))[1] * (b / c);
  };
  CHECK(of_diagonal(1e30, 1e25, 1e-12, DType::f32) == doctest::Approx(1).epsilon(1e-6));
  CHECK(of_diagonal(1e38, 1e32, 1e-6, DType::f32) == doctest::Approx(1).epsilon(1e-6));
  CHECK(of_diagonal(1e300, 1e290, 1e-12, DType::f64) == doctest::Approx(1).epsilon(1e-14));
  const std::string shared = error_of([&] {
    sylvester(matrix({1e-30, 0, 0, 3e-30}, DType::f32), matrix({2e-30, 0, 0, -3e-30}, DType::f32), eye(2));
  });
  CHECK_MESSAGE(contains(shared, "[sylvester] A and -B share the eigenvalue 3e-30+0i"), shared);
  Tape tape;
  const Tensor small = cast(matrix({3e-30, 1e-30, -1e-30, 2e-30}), DType::f32);
  const Tensor polar = grad(sum(polar_factor(small) * cast(matrix({1, 2, 3, 4}), DType::f32)), {small})[0];
  const Tensor one = matrix({3, 1, -1, 2});
  const Tensor wanted = grad(sum(polar_factor(one) * matrix({1, 2, 3, 4})), {one})[0];
  CHECK(difference(cast(polar, DType::f64) * 1e-30, wanted) < 1e-5);
}
