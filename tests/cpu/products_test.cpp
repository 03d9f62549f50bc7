// Products of sizes where one kernel hands over to another: sums of 255 to 1000 terms, 1 to 40 columns, all forms of
// both sides, against sums in double precision.
#include <cmath>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using C = std::complex<double>;

/// Element (i, j) of op(x).
C element(const std::vector<C>& x, const Shape& shape, bool transposed, bool conjugated, std::int64_t i,
          std::int64_t j) {
  const C v = x[static_cast<std::size_t>(transposed ? j * shape[1] + i : i * shape[1] + j)];
  return conjugated ? std::conj(v) : v;
}

/// The largest error of op(a) op(b), in units of k roundings.
double error_of_product(std::int64_t m, std::int64_t k, std::int64_t n, const MatmulFlags& f, DType dtype) {
  const Tensor a = random(f.transpose_a ? Shape{k, m} : Shape{m, k}, 1, dtype),
               b = random(f.transpose_b ? Shape{n, k} : Shape{k, n}, 2, dtype);
  const auto x = elements(a), y = elements(b), got = elements(matmul(a, b, f));
  REQUIRE(got.size() == static_cast<std::size_t>(m * n));
  double worst = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      C sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum +=
            element(x, a.shape(), f.transpose_a, f.conj_a, i, l) * element(y, b.shape(), f.transpose_b, f.conj_b, l, j);
      worst = std::max(worst, std::abs(sum - got[static_cast<std::size_t>(i * n + j)]));
    }
  }
  const double unit = real_of(dtype) == DType::f32 ? 0x1p-24 : 0x1p-53;
  return worst / (unit * static_cast<double>(k));
}

// Each of the k roundings of a sum is relative to a partial sum, which grows as its root: together, as a random walk,
// they come to about k / 4 roundings; measured are 1.2 at most over all elements. A term that is missing, or counted
// twice, is off by thousands.
constexpr double most = 2;

MatmulFlags form(int flags) {
  return {.transpose_a = (flags & 1) != 0,
          .transpose_b = (flags & 2) != 0,
          .conj_a = (flags & 4) != 0,
          .conj_b = (flags & 8) != 0};
}

}  // namespace

TEST_CASE("real products whose sums are long") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t k : {255, 256, 257, 513, 1000}) {
      for (const std::int64_t n : {1, 3, 16, 17, 40}) {
        for (const std::int64_t m : {1, 20, 70}) {
          for (int flags = 0; flags < 4; ++flags) {
            CAPTURE(name_of(dtype));
            CAPTURE(k);
            CAPTURE(n);
            CAPTURE(m);
            CAPTURE(flags);
            CHECK(error_of_product(m, k, n, form(flags), dtype) < most);
          }
        }
      }
    }
  }
}

TEST_CASE("complex products whose sums are long") {
  for (const DType dtype : {DType::c64, DType::c128}) {
    for (const std::int64_t k : {257, 512, 513}) {
      for (const auto& [m, n] : {std::array<std::int64_t, 2>{1, 1}, {20, 1}, {257, 1}, {1, 20}, {20, 17}}) {
        for (int flags = 0; flags < 16; ++flags) {
          CAPTURE(name_of(dtype));
          CAPTURE(k);
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(flags);
          CHECK(error_of_product(m, k, n, form(flags), dtype) < most);
        }
      }
    }
  }
}

TEST_CASE("products that are cut into parts: rows, columns (the last part has one), terms of sums") {
  for (const DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    for (const auto& [m, k, n] :
         {std::array<std::int64_t, 3>{203, 300, 67}, {67, 300, 203}, {97, 300, 20}, {20, 300, 97}, {21, 5001, 13}}) {
      for (int flags = 0; flags < (is_complex(dtype) ? 16 : 4); ++flags) {
        CAPTURE(name_of(dtype));
        CAPTURE(m);
        CAPTURE(flags);
        CHECK(error_of_product(m, k, n, form(flags), dtype) < most);
      }
    }
  }
}

TEST_CASE("gradients of weights whose rows are a multiple of 2 KB apart, and products of part of a vector's columns") {
  const MatmulFlags gradient{.transpose_a = true};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto apart = static_cast<std::int64_t>(2048 / size_of(dtype));
    for (const std::int64_t k : {31, 32, 33, 64, 100}) {
      CAPTURE(name_of(dtype));
      CAPTURE(k);
      for (const auto& [m, n] : {std::pair{apart, apart}, {apart, 2 * apart}, {apart, 40}, {40, apart}, {8, apart}})
        CHECK(error_of_product(m, k, n, gradient, dtype) < most);
    }
    for (const std::int64_t n : {2, 10, 27, 65, 127})
      for (const std::int64_t m : {64, 65, 130}) CHECK(error_of_product(m, 100, n, {}, dtype) < most);
  }
}

TEST_CASE("one or two rows by a large matrix, and a large matrix by a column") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (int flags = 0; flags < 4; ++flags) {
      CAPTURE(name_of(dtype));
      CAPTURE(flags);
      for (const std::int64_t m : {1, 2}) CHECK(error_of_product(m, 700, 107, form(flags), dtype) < most);
      CHECK(error_of_product(300, 300, 1, form(flags), dtype) < most);
    }
  }
}

TEST_CASE("a batch of products whose sums are long is each of them") {
  for (int flags = 0; flags < 4; ++flags) {
    CAPTURE(flags);
    const MatmulFlags f = form(flags);
    const Tensor a = random(f.transpose_a ? Shape{3, 600, 20} : Shape{3, 20, 600}, 1, DType::f32),
                 b = random(f.transpose_b ? Shape{3, 7, 600} : Shape{3, 600, 7}, 2, DType::f32);
    const Tensor c = matmul(a, b, f);
    for (std::int64_t i = 0; i < 3; ++i) CHECK(difference(c.at(i), matmul(a.at(i), b.at(i), f)) < 1e-6);
  }
}

TEST_CASE("few sums in single precision: the error does not grow with their length") {
  for (const std::int64_t k : {4095, 4096, 5000, 1000003}) {
    const Tensor row = uniform({k}, 0, 1, 1, 2);
    const Tensor wide = cast(row, DType::f64);
    const double exact = elements(sum(wide * wide))[0].real();
    const Tensor rows = reshape(concat({row, row, row}, 0), {3, k}), columns = permute(rows, {1, 0});
    for (const Tensor& y : {dot(row, row), vdot(row, row), matmul(rows, row), matmul(row, columns),
                            matmul(rows, rows, {.transpose_b = true})}) {
      for (const auto& v : elements(y)) CHECK(std::abs(v.real() / exact - 1) < 1e-6);
    }
    const Tensor z = complex(row, row);
    for (const auto& v : elements(vdot(z, z))) CHECK(std::abs(v / (2 * exact) - 1.0) < 1e-6);
    for (const auto& v : elements(dot(z, z))) CHECK(std::abs(v / C(0, 2 * exact) - 1.0) < 1e-6);
  }
}
