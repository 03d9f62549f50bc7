// Cumulative products, extremes and logarithms of sums at zeros, ties, infinities and NaN. Expected values are by hand;
// those of cummax's gradient at ties are PyTorch's.
#include <cmath>
#include <limits>

#include "ops/recurrence.h"
#include "tests/support/numbers.h"

using namespace reel;
using namespace reel::test;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
const DType real_types[] = {DType::f32, DType::f64};

/// The gradient of sum(weight f(x)); weight 1 by default.
Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& weight = {}) {
  Tape tape;
  const Tensor y = f(x);
  return grad({sum(weight.defined() ? weight * y : y)}, {x})[0];
}
}  // namespace

TEST_CASE("cumulative products with zeros have exact derivatives of any order") {
  const Tensor x = Tensor::from<double>({2, 0, 3, 5, 2, 0, 3, 0}, {2, 4});
  Tape tape;
  const auto first = grad({sum(cumprod(x))}, {x}, {.create_graph = true});
  check(first[0], {1, 2 + 6 + 30, 0, 0, 1, 2 + 6, 0, 0});
  check(grad({sum(slice(first[0], 1, 1, 2))}, {x})[0], {1 + 3 + 15, 0, 2 + 10, 6, 1 + 3, 0, 2, 6});
}

TEST_CASE("cumulative products: of f32 in double, a zero stays one beside what overflows, and i32 wraps") {
  const Tensor x = Tensor::full({8}, 1.1, DType::f32);  // as f64 has it, rounded once
  CHECK(cumprod(x).values<float>()[7] == static_cast<float>(std::pow(static_cast<double>(1.1F), 8)));
  const Tensor large = Tensor::from<double>({0, 1e300, 1e300, 1e300}, {4});
  check(cumprod(large), {0, 0, 0, 0});
  check(cumprod(Tensor::from<double>({2, inf, 0, 1}, {4})), {2, inf, NAN, NAN});
  CHECK(cumprod(Tensor::from<std::int32_t>({65536, 32767, 2, -3}, {4})).values<std::int32_t>() ==
        std::vector<std::int32_t>{65536, 2147418112, -131072, 393216});
}

TEST_CASE("recurrences: a factor of 0 forgets what was before") {
  const Tensor f = Tensor::from<double>({7, 0.5, 0, 0.5}, {4}), t = Tensor::from<double>({8, 1, 2, 3}, {4});
  for (const bool columns : {false, true}) {
    const auto shaped = [&](const Tensor& x) { return columns ? reshape(x, {4, 1}) : x; };
    check(recurrence(shaped(f), shaped(t), 0), {8, 5, 2, 4});
    check(recurrence(shaped(f), shaped(t), 0, true), {8 + 7 * 2, 2, 2, 3});
  }
}

TEST_CASE("cumulative extremes: of equal elements the last counts, and NaN stays") {
  for (const DType d : real_types) {
    const Tensor x = numbers({1, 3, 3, 2, NAN, 5, NAN}, d, 1), ties = numbers({3, 1, 1, 3, 2}, d, 1);
    check(cummax(x), {1, 3, 3, 3, NAN, NAN, NAN});
    check(cummin(x), {1, 1, 1, 1, NAN, NAN, NAN});
    CHECK(argcummax(x).values<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2, 2, 4, 4, 6});
    CHECK(argcummin(x).values<std::int32_t>() == std::vector<std::int32_t>{0, 0, 0, 0, 4, 4, 6});
    check(gradient([](const Tensor& v) { return cummax(v); }, ties), {3, 0, 0, 2, 0});
    check(gradient([](const Tensor& v) { return cummin(v); }, ties), {1, 1, 3, 0, 0});
    check(cummax(numbers({-inf, -inf, 0}, d, 1)), {-inf, -inf, 0});
  }
  CHECK(cummax(Tensor::from<std::int32_t>({-2147483647, 5, 3}, {3})).values<std::int32_t>() ==
        std::vector<std::int32_t>{-2147483647, 5, 5});
}

TEST_CASE("logcumsumexp neither over- nor underflows, and -inf adds nothing") {
  const double log2 = std::log(2);
  for (const DType d : real_types) {
    const double e = d == DType::f32 ? 1e-6 : 1e-15;
    const Tensor x = numbers({-inf, -inf, -1000, -1000, 1000, 1000, -inf, 0}, d, 1);
    check(logcumsumexp(x), {-inf, -inf, -1000, -1000 + log2, 1000, 1000 + log2, 1000 + log2, 1000 + log2}, e);
    check(gradient([](const Tensor& v) { return logcumsumexp(v); }, x), {0, 0, 1.5, 0.5, 1 + 1.5, 1.5, 0, 0}, e);
    check(logcumsumexp(numbers({1000, -1000}, d, 1)), {1000, 1000});
    check(logcumsumexp(numbers({0, inf, 1, -inf}, d, 1)), {0, inf, inf, inf});
    check(logcumsumexp(numbers({0, NAN, 1}, d, 1)), {0, NAN, NAN});
    const Tensor never = numbers({-inf, -inf, -inf}, d, 1);
    check(logcumsumexp(never), {-inf, -inf, -inf});
    check(gradient([](const Tensor& v) { return logcumsumexp(v); }, never), {0, 0, 0});
  }
}

TEST_CASE("logcumsumexp of many steps ends in logsumexp, with its gradient") {
  const Tensor x = random({3, 10000}, 1, DType::f64, -30, 30);
  const auto last = [](const Tensor& v) { return slice(logcumsumexp(v), 1, 9999, 10000); };
  CHECK(difference(last(x), logsumexp(x, {1}, true)) < 1e-13);
  CHECK(difference(gradient(last, x), softmax(x)) < 1e-13);
  CHECK(difference(cast(last(cast(x, DType::f32)), DType::f64), last(x)) < 1e-6);
}
