// The operation counts of linear algebra and Fourier transforms: the formulas of Golub and Van Loan, Matrix
// Computations.
#include <cmath>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The count of the call of this op that f makes.
double flops(const std::string& op, const std::function<void()>& f) {
  const Tape tape;
  f();
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Tape::Node& node = tape.node(i);
    if (op != node.op->traits.name) continue;
    REQUIRE(static_cast<bool>(node.op->loop.flops));
    const auto in = tape.inputs(node);
    return node.op->loop.flops(node.attrs, pointers(Tensors(in.begin(), in.end())));
  }
  return NAN;
}

/// Well-conditioned matrices [2, m, n].
Tensor matrices(std::int64_t m, std::int64_t n, DType dtype = DType::f64) {
  const Tensor one = eye(std::max(m, n), dtype);
  return 0.1 * random({2, m, n}, 1, dtype) + slice(slice(one, 0, 0, m), 1, 0, n);
}

bool is(double got, double count) { return std::abs(got - count) <= 1e-12 * count; }

}  // namespace

TEST_CASE("equations") {
  const Tensor A = matrices(20, 20), B = random({2, 20, 3}, 2), shared = at(A, 0);
  const double elimination = 2 * 20 * 20 * 20 / 3.0, substitution = 20 * 20 * 3;
  CHECK(is(flops("solve", [&] { solve(A, B); }), 2 * (elimination + 2 * substitution)));
  CHECK(is(flops("solve", [&] { solve(shared, B); }), elimination + 2 * 2 * substitution));  // eliminated once
  CHECK(is(flops("solve", [&] { solve(cast(shared, DType::c128), cast(B, DType::c128)); }),
           4 * (elimination + 2 * 2 * substitution)));
  CHECK(is(flops("triangular_solve", [&] { triangular_solve(A, B); }), 2 * substitution));
  CHECK(is(flops("inverse", [&] { inverse(A); }), 2 * (elimination + 2 * 20 * 20 * 20)));
  CHECK(is(flops("sylvester", [&] { sylvester(A, matrices(3, 3), B); }),
           2 * (25 * (8000 + 27) + 5 * (20 * 20 * 3 + 20 * 3 * 3))));
}

TEST_CASE("factorisations") {
  const Tensor A = matrices(12, 12), tall = matrices(12, 5), wide = matrices(5, 12);
  const double n3 = 12 * 12 * 12;
  CHECK(is(flops("det", [&] { det(A); }), 2 * 2 * n3 / 3));
  CHECK(is(flops("slogdet", [&] { slogdet(A); }), 2 * 2 * n3 / 3));
  CHECK(is(flops("cholesky", [&] { cholesky(matmul(A, transpose(A))); }), 2 * n3 / 3));
  CHECK(is(flops("lu", [&] { lu(A); }), 2 * 2 * n3 / 3));
  CHECK(is(flops("lu", [&] { lu(tall); }), 2 * (12 * 5 * 5 - 5 * 5 * 5 / 3.0)));
  CHECK(is(flops("lu", [&] { lu(wide); }), 2 * (12 * 5 * 5 - 5 * 5 * 5 / 3.0)));
  CHECK(is(flops("qr", [&] { qr(tall); }), 2 * 4 * 5 * 5 * (12 - 5 / 3.0)));
  CHECK(is(flops("qr", [&] { qr(wide); }), 2 * (2 * 5 * 5 * (12 - 5 / 3.0) + 4 * 5 * 5 * 5 / 3.0)));
  CHECK(is(flops("svd", [&] { svd(tall); }), 2 * (14 * 12 * 5 * 5 + 8 * 5 * 5 * 5)));
  CHECK(is(flops("svd", [&] { svd(cast(wide, DType::c128)); }), 4 * 2 * (14 * 12 * 5 * 5 + 8 * 5 * 5 * 5)));
  CHECK(is(flops("polar_factor", [&] { polar_factor(tall); }), 2 * (14 * 12 * 25 + 8 * 125 + 2 * 12 * 25)));
  CHECK(is(flops("pinv", [&] { pinv(wide); }), 2 * (14 * 12 * 25 + 8 * 125 + 2 * 12 * 25)));
  CHECK(is(flops("eigh", [&] { eigh(A); }), 2 * 9 * n3));
  CHECK(is(flops("eig", [&] { eig(A); }), 2 * 25 * n3));
  CHECK(is(flops("schur", [&] { schur(A); }), 4 * 2 * 25 * n3));
  CHECK(is(flops("spectral_radius", [&] { spectral_radius(A); }), 2 * 10 * n3));
}

TEST_CASE("the matrix exponential: products of order 13 or 7, and the quotient") {
  const Tensor A = matrices(8, 8);
  const double n3 = 8 * 8 * 8, quotient = 2 / 3.0 + 2;
  CHECK(is(flops("matrix_exp", [&] { matrix_exp(A); }), 2 * n3 * (6 * 2 + quotient)));
  CHECK(is(flops("matrix_exp", [&] { matrix_exp(cast(A, DType::f32)); }), 2 * n3 * (4 * 2 + quotient)));
  CHECK(is(flops("matrix_exp_derivative", [&] { matrix_exp_derivative(A, A); }),
           2 * n3 * (3 * 6 * 2 + 2 + 2 * quotient)));
}

TEST_CASE("Fourier transforms: 5 n log2 n, half for real ones") {
  const Tensor x = random({3, 64}, 1), z = random({3, 64}, 2, DType::c128);
  CHECK(is(flops("fft", [&] { fft(z); }), 3 * 5 * 64 * 6));
  CHECK(is(flops("rfft", [&] { rfft(x); }), 3 * 5 * 64 * 6 / 2.0));
  CHECK(is(flops("irfft", [&] { irfft(slice(z, 1, 0, 33)); }), 3 * 5 * 64 * 6 / 2.0));
}
