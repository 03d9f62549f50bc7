// Products of plane rotations against matrices put together pair by pair.
#include "tests/ops/op_cases.h"

using namespace reel;
using namespace reel::test;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

using Matrix = std::vector<std::vector<Complex>>;

Matrix unit(std::size_t n) {
  Matrix m(n, std::vector<Complex>(n));
  for (std::size_t i = 0; i < n; ++i) m[i][i] = 1;
  return m;
}

/// The pair (p, q) of every column of m turned: p' = c p - s e q, q' = s p + c e q.
void turn(Matrix& m, std::size_t p, std::size_t q, double theta, double phi) {
  const Complex e = std::polar(1.0, phi);
  for (std::size_t j = 0; j < m.size(); ++j) {
    const Complex a = m[p][j], b = m[q][j];
    m[p][j] = std::cos(theta) * a - std::sin(theta) * e * b;
    m[q][j] = std::sin(theta) * a + std::cos(theta) * e * b;
  }
}

/// The matrix whose columns are what the rotations make of unit vectors.
double against(const Rotations& r, const Rotations::Tables& tables, DType dtype, const Matrix& expected) {
  const Tensor rows = r(eye(r.size(), dtype), tables);
  std::vector<Complex> transposed;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t j = 0; j < expected.size(); ++j) transposed.push_back(expected[j][i]);
  }
  const auto y = elements(rows);
  double worst = 0;
  for (std::size_t k = 0; k < y.size(); ++k) worst = std::max(worst, std::abs(y[k] - transposed[k]));
  return worst;
}

}  // namespace

TEST_CASE("the FFT style turns pairs at distances n/2 to 1, in the order of EUNN's code") {
  const Rotations r = Rotations::fft(8);
  CHECK(r.angles() == 12);
  const Tensor theta = random({12}, 1, DType::f64, -3, 3), phi = random({12}, 2, DType::f64, -3, 3);
  const auto t = elements(theta), f = elements(phi);
  Matrix real = unit(8), complex = unit(8);
  // pi_0 = 0..7; pi_1 = 0 2 4 6 1 3 5 7; pi_2 = 0 4 1 5 2 6 3 7: the angle of first member p is pi_l(p) mod 4
  const std::size_t pi[3][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}, {0, 4, 1, 5, 2, 6, 3, 7}};
  for (std::size_t l = 0; l < 3; ++l) {
    const std::size_t d = 4 >> l;
    for (std::size_t p = 0; p < 8; ++p) {
      if (p / d % 2 == 1) continue;
      const std::size_t k = 4 * l + pi[l][p] % 4;
      turn(real, p, p + d, t[k].real(), 0);
      turn(complex, p, p + d, t[k].real(), f[k].real());
    }
  }
  CHECK(against(r, r.tables(theta), DType::f64, real) < 1e-14);
  CHECK(against(r, r.tables(theta, phi), DType::c128, complex) < 1e-14);
}

TEST_CASE("the tunable style turns neighbours, even and odd pairs in turn") {
  const Rotations r = Rotations::tunable(6, 4);
  CHECK(r.angles() == 3 + 2 + 3 + 2);
  const Tensor theta = random({10}, 3, DType::f64, -3, 3), phi = random({10}, 4, DType::f64, -3, 3);
  const auto t = elements(theta), f = elements(phi);
  Matrix real = unit(6), complex = unit(6);
  std::size_t k = 0;
  for (std::size_t l = 0; l < 4; ++l) {
    for (std::size_t p = l % 2; p + 1 < 6; p += 2, ++k) {
      turn(real, p, p + 1, t[k].real(), 0);
      turn(complex, p, p + 1, t[k].real(), f[k].real());
    }
  }
  CHECK(against(r, r.tables(theta), DType::f64, real) < 1e-14);
  CHECK(against(r, r.tables(theta, phi), DType::c128, complex) < 1e-14);
}

TEST_CASE("rotations keep lengths, and their angles have gradients") {
  for (const Rotations& r : {Rotations::fft(64), Rotations::tunable(64, 64)}) {
    const Tensor theta = random({r.angles()}, 5, DType::f64, -3, 3), phi = random({r.angles()}, 6, DType::f64, -3, 3);
    const Tensor x = random({5, 64}, 7, DType::c128);
    CHECK(difference(sum(square(abs(r(x, r.tables(theta, phi)))), {1}), sum(square(abs(x)), {1})) < 1e-13);
  }
  const Rotations r = Rotations::fft(8);
  const GradErrors e = grad_errors([&](const Tensors& x) { return r(x[0], r.tables(x[1], x[2])); },
                                   {random({3, 8}, 8, DType::c128), random({12}, 9), random({12}, 10)}, 11);
  CHECK(e.first < 1e-8);
  CHECK(e.second < 1e-8);
}

TEST_CASE("layers of all widths: vectors side by side, vectors shuffled, and what is left over") {
  for (std::int64_t n : {5, 16, 33, 64, 100, 131}) {
    for (std::int64_t d : {1, 2, 3, 4, 8, 9, 16, 17, 20, 32, 33}) {
      for (std::int64_t offset : {0, 1, 5}) {
        const RotationLayer layer{offset, d};
        for (DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
          CAPTURE(n);
          CAPTURE(d);
          CAPTURE(offset);
          CAPTURE(name_of(dtype));
          const Tensor x = random({3, n}, 1, dtype), C = random({n}, 2, dtype), S = random({n}, 3, dtype);
          const Tensor other = exchange(x, layer);
          const auto in = elements(x), out = elements(other);
          for (std::int64_t k = 0; k < 3 * n; ++k) REQUIRE(out[at(k)] == in[at(k / n * n + layer.partner(k % n, n))]);
          CHECK(difference(rotate(x, C, S, layer), C * x + S * other) < (size_of(real_of(dtype)) == 4 ? 1e-6 : 1e-14));
        }
        const Tensor places = cast(floor(random({3, n}, 4, DType::f32, 0, 99)), DType::i32);
        CHECK(equal(exchange(exchange(places, layer), layer), places).values<bool>() ==
              std::vector<bool>(static_cast<std::size_t>(3 * n), true));
      }
    }
  }
  const Tensor infinite = exchange(Tensor::from<float>({INFINITY, 1, 2, NAN}, {1, 4}), {0, 2});
  CHECK(infinite.values<float>()[2] == INFINITY);  // moved, not multiplied
  CHECK(infinite.values<float>()[3] == 1);
}

TEST_CASE("sizes that do not fit are named") {
  CHECK(contains(error_of([] { Rotations::fft(12); }), "[rotations] the FFT style needs a power of two, got 12"));
  CHECK(contains(error_of([] { Rotations::tunable(7, 2); }), "an even number of coordinates is needed, got 7"));
  CHECK(contains(error_of([] { Rotations::tunable(8, 3); }), "even number of layers, got 3"));
  CHECK(contains(error_of([] { Rotations::fft(8).tables(random({5}, 1)); }), "12 angles are needed; got f64 (5,)"));
  CHECK(contains(error_of([] {
                   rotate(random({2, 4}, 1), random({3}, 1), random({4}, 1), {});
                 }),
                 "[rotate] C and S must be (4,), as the last axis of x"));
  const Tensor x = random({2, 4}, 1), z = random({2, 4}, 2, DType::c128);  // no pairs are so far apart
  for (const std::int64_t far : {std::int64_t{3}, std::numeric_limits<std::int64_t>::max()}) {
    CHECK(difference(exchange(x, {0, far}), x) == 0);
    CHECK(difference(exchange(z, {0, far}), z) == 0);
  }
}
