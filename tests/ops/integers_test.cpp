// Integers that do not fit i32 wrap around, as NumPy's do; what is expected is computed there.
#include <limits>

#include "engine/scan/scan.h"
#include "ops/sum_rows.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Integers = std::vector<std::int32_t>;

constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max(),
                       least = std::numeric_limits<std::int32_t>::min();

Tensor vector(const Integers& v) { return Tensor::from<std::int32_t>(v, {std::ssize(v)}); }
Integers values(const Tensor& x) { return x.values<std::int32_t>(); }

}  // namespace

TEST_CASE("arithmetic of integers wraps around") {
  const Tensor a = vector({most, least, 65537, -5}), b = vector({2, -1, 65537, 3});
  CHECK(values(a + b) == Integers{least + 1, most, 131074, -2});
  CHECK(values(a - b) == Integers{most - 2, least + 1, 0, -8});
  CHECK(values(b - a) == Integers{least + 3, most, 0, 8});
  CHECK(values(a * b) == Integers{-2, least, 131073, -15});
  CHECK(values(square(a)) == Integers{1, 0, 131073, 25});
  CHECK(values(-a) == Integers{-most, least, -65537, 5});
  CHECK(values(abs(a)) == Integers{most, least, 65537, 5});
  CHECK(values(a + 7) == Integers{least + 6, least + 7, 65544, 2});
  CHECK(values(-9 - a) == Integers{most - 7, most - 8, -65546, -4});
  CHECK(values(affine(a, 3, 1)) == Integers{most - 1, least + 1, 196612, -14});
  CHECK(values(prod(a)) == Integers{least});
}

TEST_CASE("sums of integers wrap around") {
  const Tensor index = vector({1, 1, 0, 1}), x = vector({most, 2, -3, least}),
               rows = Tensor::from<std::int32_t>({most, least, 2, -2, -3, 7, least, most}, {4, 2});
  CHECK(values(sum(x)) == Integers{-2});
  CHECK(values(cumsum(x)) == Integers{most, least + 1, most - 1, -2});
  CHECK(values(index_add(x, 0, index, 2)) == Integers{-3, 1});
  CHECK(values(segment_sum(index, rows, 2)) == Integers{-3, 7, 1, -3});
  CHECK(values(scatter_add(x, index, 0, 2)) == Integers{-3, 1});
  CHECK(values(sum_rows(rows)) == Integers{-2, 4});
  CHECK(values(sum_products(rows, rows)) == Integers{14, 54});
  const Tensor wide = Tensor::full({5, 37}, most, DType::i32);  // some vectors of numbers, and others
  CHECK(values(sum_rows(wide)) == Integers(37, most - 4));
  CHECK(values(segment_sum(vector({0, 0, 0, 0, 0}), wide, 1)) == Integers(37, most - 4));
}

TEST_CASE("sums of integers wrap around in loops") {
  const Tensor x = Tensor::full({6, 3, 16}, most, DType::i32), zero = Tensor::zeros({1, 16}, DType::i32),
               index = vector({0, 0, 0});
  const Step step = [&](const Tensors& s, const Tensors& in) {
    return Next{{s[0] + sum_rows(in[0]), s[1] - segment_sum(index, in[0], 1)}, {}};
  };
  const Tensors last = scan(step, {zero, zero}, {x}).last;
  CHECK(values(last[0]) == Integers(16, -18));
  CHECK(values(last[1]) == Integers(16, 18));
}
