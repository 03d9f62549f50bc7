// Kernels with loops of their own for few elements: rows of 2 to 9 numbers, rows with an operand that is
// broadcast, and sums of few rows.
#include <cstring>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.numel() == b.numel() && a.dtype() == b.dtype() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * size_of(a.dtype())) == 0;
}

/// Random numbers, of which some are 0, -0 and NaN.
Tensor with_special(const Shape& shape, DType dtype) {
  const Tensor x = random(shape, 1, dtype, -9, 9);
  if (!is_floating(dtype)) return x;
  const Tensor place = uniform(shape, 0, 1, 2, 3, DType::f64);
  const Tensor zeros = where(place < 0.2, constant(0, x), where(place < 0.4, constant(-0.0, x), x));
  return where(place > 0.95, constant(NAN, x), zeros);
}

}  // namespace

TEST_CASE("a short row among others has the sum and the extremes that it has alone, to the last bit") {
  constexpr std::int64_t rows = 83;
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    for (std::int64_t n = 1; n <= 9; ++n) {
      CAPTURE(name_of(dtype));
      CAPTURE(n);
      const Tensor numbers = random({rows, n}, 4, dtype, -9, 9), special = with_special({rows, n}, dtype);
      const Tensor sums = sum(numbers, {-1}), most = max(special, {-1}), least = min(special, {-1});
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto row = [&](const Tensor& x) { return slice(x, 0, r, r + 1); };
        CHECK(same_bits(row(sums), sum(row(numbers), {-1})));
        CHECK(same_bits(row(most), max(row(special), {-1})));
        CHECK(same_bits(row(least), min(row(special), {-1})));
      }
    }
  }
}

TEST_CASE("copies of short runs: reversed, joined and repeated") {
  constexpr std::int64_t rows = 11;
  for (const DType dtype : all_dtypes) {
    for (std::int64_t n = 1; n <= 9; ++n) {
      CAPTURE(name_of(dtype));
      CAPTURE(n);
      const Tensor x = random({2, rows, n}, 5, dtype), column = random({2, rows, 1}, 6, dtype);
      const auto in = elements(x), single = elements(column);
      const auto up = elements(flip(x, 1)), back = elements(flip(x, 2)), joined = elements(concat({x, x}, 2)),
                 repeated = elements(repeat(column, n, 2));
      bool right = true;
      for (std::int64_t i = 0; i < 2 * rows; ++i) {
        const std::int64_t mirrored = i / rows * rows + rows - 1 - i % rows;
        for (std::int64_t k = 0; k < n; ++k) {
          const auto at = [&](const auto& from, std::int64_t place) { return from[static_cast<std::size_t>(place)]; };
          const auto value = at(in, i * n + k);
          right &= at(up, mirrored * n + k) == value && at(back, i * n + n - 1 - k) == value &&
                   at(joined, 2 * i * n + k) == value && at(joined, (2 * i + 1) * n + k) == value &&
                   at(repeated, i * n + k) == at(single, i);
        }
      }
      CHECK(right);
    }
  }
}

TEST_CASE("one row for all, one number for each row, or both: the same bits as of full operands") {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::c64, DType::c128}) {
    for (const std::int64_t n : {1, 2, 5, 8, 13, 33, 63, 64}) {
      for (const std::int64_t rows : {3, 4, 37, 1500}) {
        CAPTURE(name_of(dtype));
        CAPTURE(n);
        CAPTURE(rows);
        const Tensor x = random({rows, n}, 8, dtype), column = random({rows, 1}, 9, dtype),
                     row = random({1, n}, 10, dtype);
        const auto full = [&](const Tensor& part) { return expand(part, {rows, n}); };
        for (const auto& [a, b] :
             {std::pair{x, column}, {column, x}, {x, row}, {row, x}, {column, row}, {row, column}}) {
          CHECK(same_bits(a - b, full(a) - full(b)));
          CHECK(same_bits(equal(a, b), equal(full(a), full(b))));
        }
      }
    }
  }
}

TEST_CASE("sums along a middle axis add the rows in order") {
  constexpr std::int64_t rows = 20;
  for (const std::int64_t columns : {8, 31, 32, 33, 64, 67}) {
    CAPTURE(columns);
    const Tensor x = random({3, rows, columns}, 7, DType::f64);
    const auto in = x.values<double>(), out = sum(x, {1}).values<double>();
    bool same = true;
    for (std::int64_t i = 0; i < 3 * columns; ++i) {
      double total = 0;
      for (std::int64_t r = 0; r < rows; ++r)
        total += in[static_cast<std::size_t>((i / columns * rows + r) * columns + i % columns)];
      same &= out[static_cast<std::size_t>(i)] == total;
    }
    CHECK(same);
  }
}
