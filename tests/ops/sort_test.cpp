// Sorting: NaN, ties, many elements, gradients, errors.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/support/numbers.h"

using namespace reel;
using namespace reel::test;

namespace {
using Places = std::vector<std::int32_t>;
constexpr double inf = std::numeric_limits<double>::infinity();
Places places(const Tensor& x) { return x.values<std::int32_t>(); }
}  // namespace

TEST_CASE("NaN is larger than any number, and equal elements keep their order") {
  for (const DType d : {DType::f32, DType::f64}) {
    const Tensor x = numbers({2, NAN, -inf, 1, NAN, inf}, d, 1), zeros = numbers({0.0, -0.0, 1, 0.0, -1}, d, 1);
    for (const bool columns : {false, true}) {
      const auto shaped = [&](const Tensor& v) { return columns ? transpose(stack({v, v})) : v; };
      const auto first = [&](const Tensor& v) { return places(columns ? at(transpose(v), 0) : v); };
      CHECK(first(argsort(shaped(x), 0)) == Places{2, 3, 0, 5, 1, 4});
      CHECK(first(argsort(shaped(x), 0, true)) == Places{1, 4, 5, 0, 3, 2});
      CHECK(first(argsort(shaped(zeros), 0)) == Places{4, 0, 1, 3, 2});
      CHECK(first(argsort(shaped(zeros), 0, true)) == Places{2, 0, 1, 3, 4});
      CHECK(first(top_k(shaped(x), 3, 0).indices) == Places{1, 4, 5});
    }
    check(sort(x), {-inf, 1, 2, inf, NAN, NAN});
    check(sort(x, 0, true), {NAN, NAN, inf, 2, 1, -inf});
    check(top_k(zeros, 2).values, {1, 0.0});
  }
  CHECK(places(sort(Tensor::from<std::int32_t>({2147483647, -2147483647, 0}, {3}))) ==
        Places{-2147483647, 0, 2147483647});
}

TEST_CASE("many elements, with ties") {
  const std::int64_t n = 5000;
  const Tensor x = integers({n}, 0, 400, 3, 1);
  const Places values = places(x);
  Places order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int32_t i) { return values[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) { return value(i) < value(j); });
  CHECK(places(argsort(x)) == order);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) { return value(i) > value(j); });
  CHECK(places(argsort(cast(x, DType::f32), 0, true)) == order);
  for (const std::int64_t k : {1, 10, 4999})
    CHECK(places(top_k(cast(x, DType::f64), k).indices) == Places(order.begin(), order.begin() + k));
}

TEST_CASE("gradients go where the elements came from") {
  const Tensor x = Tensor::from<double>({3, 1, 2, 5, 4, 6}, {2, 3}), w = Tensor::from<double>({1, 10, 100}, {3});
  Tape tape;
  check(grad({sum(w * sort(x))}, {x})[0], {100, 1, 10, 10, 1, 100});
  check(grad({sum(slice(w, 0, 0, 2) * top_k(x, 2).values)}, {x})[0], {1, 0, 10, 10, 0, 1});
}

TEST_CASE("errors of sorting and of cumulative functions") {
  const Tensor x = random({2, 3}, 1), z = complex(x, x);
  const auto check_error = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = error_of(f);
    CHECK_MESSAGE(contains(text, part), text);
    CHECK_MESSAGE(contains(text, "tests/ops/sort_test.cpp:"), text);
  };
  check_error([&] { sort(z); }, "[sort] c128 elements are not supported, as they have no order; got c128 (2, 3)");
  check_error([&] { sort(x > 0); }, "[sort] bool elements are not supported. Hint: cast to i32; got bool (2, 3)");
  check_error([&] { argsort(x, 2); }, "[argsort] axis 2 is out of range for a tensor of rank 2");
  check_error([&] { sort(at(at(x, 0), 0)); }, "[sort] axis -1 is out of range");
  check_error([&] { top_k(x, 4); }, "[top_k] k is in 0..3, the extent of axis -1, got 4; got f64 (2, 3)");
  check_error([&] { top_k(x, -1, 0); }, "[top_k] k is in 0..2, the extent of axis 0, got -1");
  check_error([&] { top_k(z, 1); }, "[top_k] c128 elements are not supported");
  check_error([&] { cumprod(x > 0); }, "[cumprod] bool elements are not supported. Hint: cast to i32");
  check_error([&] { cummax(z); }, "[cummax] c128 elements are not supported; got c128 (2, 3)");
  check_error([&] { cummin(x, 3); }, "[cummin] axis 3 is out of range");
  check_error([&] { logcumsumexp(cast(x, DType::i32)); }, "[logcumsumexp] i32 elements are not supported. Hint: cast");
  check_error([&] { logcumsumexp(z); }, "[logcumsumexp] c128 elements are not supported; got");
  check_error([] { sort(1.0); }, "[sort] a tensor is expected here, not a number");
}
