// Elementwise functions at numbers where short formulas fail: zeros of both signs, large quotients, and far out. The
// numbers come at all places of a vector, and in arrays shorter than one.
#include <cmath>
#include <limits>

#include "engine/scan/program.h"
#include "tests/support/numbers.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Is f(x) what is expected, number by number, up to `tolerance` times its size? Zeros have signs.
template <class F>
void check(const F& f, const std::vector<std::vector<double>>& x, const std::vector<double>& expected, DType d,
           double tolerance = 0) {
  for (const std::int64_t times : {1, 19}) {
    CAPTURE(times);
    Tensors in;
    for (const auto& row : x) in.push_back(numbers(row, d, times));
    const Tensor y = f(in);
    REQUIRE(y.numel() == times * std::ssize(expected));
    test::check(y, expected, tolerance);
  }
}

/// The gradient of the k-th input.
template <class F>
auto gradient(const F& f, std::size_t k = 0) {
  return [=](const Tensors& x) {
    Tape tape;
    return grad({sum(f(x))}, {x[k]})[0];
  };
}

double epsilon(DType d) { return d == DType::f32 ? 6e-7 : 1e-15; }

}  // namespace

TEST_CASE("remainders: large quotients, infinite divisors, and the divisor's sign, also of zeros") {
  const auto f = [](const Tensors& x) { return remainder(x[0], x[1]); };
  for (const DType d : {DType::f32, DType::f64}) {
    check(f, {{7, -7, 7, -7, 1e10, 0x1p100, -0x1p100, 0x1p60}, {3, 3, -3, -3, 3, 3, 3, -1.5}},
          {1, 2, -2, -1, 1, 1, 2, -0.5}, d);
    check(f, {{5, -5, 5, -5, inf, 1, NAN, 1}, {inf, inf, -inf, -inf, 3, 0, 1, NAN}},
          {5, inf, -inf, -5, NAN, NAN, NAN, NAN}, d);
    check(f, {{0.0, -0.0, 0.0, -0.0, 6, -6, 6}, {3, 3, -3, -3, -3, 3, 3}}, {0.0, 0.0, -0.0, -0.0, -0.0, 0.0, 0.0}, d);
    // 1 = 9 * 0.1 + a rest: 1 / 0.1 rounds to 10.
    check(gradient(f, 1), {{7, -7, -5, 1, 1e10}, {3, 3, inf, 0.1, 3}}, {-2, 3, 1, -9, -3333333333}, d, epsilon(d));
  }
  check(f, {{1e20, -1e20, 0.3}, {3, 1.5, 0.1}}, {1, 0.5, 0.09999999999999998}, DType::f64);  // of Python
}

TEST_CASE("the sign of zeros") {
  for (const DType d : {DType::f32, DType::f64}) {
    const std::vector<std::vector<double>> x{{0.0, -0.0, 2}};
    check([](const Tensors& v) { return -v[0]; }, x, {-0.0, 0.0, -2}, d);
    check([](const Tensors& v) { return v[0] * 1.0; }, x, {0.0, -0.0, 2}, d);
    check([](const Tensors& v) { return -3.0 * v[0]; }, x, {-0.0, 0.0, -6}, d);
    check([](const Tensors& v) { return v[0] + 0.0; }, x, {0.0, 0.0, 2}, d);
    check([](const Tensors& v) { return v[0] - 0.0; }, x, {0.0, -0.0, 2}, d);
    check(gradient([](const Tensors& v) { return -v[0] * v[1]; }), {{1, 1}, {0.0, -0.0}}, {-0.0, 0.0}, d);
    for (Tensor (*f)(Arg) : {+[](Arg v) { return expm1(v); }, +[](Arg v) { return log1p(v); },
                             +[](Arg v) { return tanh(v); }, +[](Arg v) { return sign(v); }})
      check([=](const Tensors& v) { return f(v[0]); }, {{0.0, -0.0}}, {0.0, -0.0}, d);
  }
  CHECK((Tensor::from<std::int32_t>({0, -4}, {2}) * 3).values<std::int32_t>() == std::vector<std::int32_t>{0, -12});
}

TEST_CASE("gelu and its derivative where they are small") {
  const auto f = [](const Tensors& x) { return gelu(x[0]); };
  const std::vector<std::vector<double>> x{{-0.5, -2, -5, -8, -10, -12, 3, -0.0, inf, -inf}};
  for (const DType d : {DType::f32, DType::f64}) {
    check(f, x,
          {-0.15426876936299345, -0.045500263896358414, -1.4332578593959696e-6, -4.9767684594174273e-15,
           -7.6198530241605261e-23, -2.1317785344932148e-32, 2.9959503059051097, -0.0, inf, -0.0},
          d, epsilon(d));
    check(gradient(f), {{-0.5, -2, -5, -8, -10}},
          {0.13250487534383716, -0.085231801078196897, -7.1469460017922946e-6, -3.979607261086796e-14,
           -7.6184000964648141e-22},
          d, 20 * epsilon(d));
  }
}

TEST_CASE("derivatives that would cancel: expm1 far below 0, asin and acos near 1") {
  const double e40 = 4.248354255291589e-18;
  for (const DType d : {DType::f32, DType::f64})
    check(gradient([](const Tensors& x) { return expm1(x[0]); }), {{-40, 0, 1}}, {e40, 1, 2.718281828459045}, d, 2e-6);
  const double near = 1 - 0x1p-28, slope = 11585.237513749988;  // 1 / sqrt((1 - x) (1 + x))
  check(gradient([](const Tensors& x) { return asin(x[0]); }), {{near, -near}}, {slope, slope}, DType::f64, 8e-16);
  check(gradient([](const Tensors& x) { return acos(x[0]); }), {{near, -near}}, {-slope, -slope}, DType::f64, 8e-16);
}

TEST_CASE("second derivatives of asin and acos near 0") {
  for (const DType d : {DType::f32, DType::f64}) {
    const auto second = [](Tensor (*f)(Arg)) {
      return gradient([f](const Tensors& x) { return grad({sum(f(x[0]))}, {x[0]}, {.create_graph = true})[0]; });
    };
    check(second(&asin), {{1e-20, -1e-9, 0.6}}, {1e-20, -1e-9, 1.171875}, d, 4 * epsilon(d));
    check(second(&acos), {{1e-20, -1e-9, 0.6}}, {-1e-20, 1e-9, -1.171875}, d, 4 * epsilon(d));
  }
}

TEST_CASE("powers of complex numbers: large ones, infinite ones, 0^0") {
  using Z = std::complex<double>;
  const auto of = [](Z z, double n) { return elements(power(Tensor::full({1}, z, DType::c64), n))[0]; };
  CHECK(std::abs(of({1e20, 1e20}, -2) - Z(0, -5e-41)) < 1e-44);
  CHECK(of({inf, 0}, 1) == Z(inf, 0));
  CHECK(of({1e20, 0}, 2) == Z(inf, 0));
  CHECK(of({0, 0}, 0) == Z(1));
  CHECK(std::abs(of({1, 2}, -3) - Z(-0.088, 0.016)) < 1e-8);
  CHECK(std::abs(of({0.8, 0.6}, 64) - std::pow(Z(0.8F, 0.6F), 64)) < 1e-7);
}

TEST_CASE("x^2 of real numbers is a square, a complex one keeps the power that is computed in double") {
  const auto squared = [](const Tensors& x) { return pow(x[0], 2); };
  for (const DType d : {DType::f32, DType::f64}) {
    check(squared, {{0.0, -0.0, -3, inf, -inf, NAN}}, {0.0, 0.0, 9, inf, inf, NAN}, d);
    check(gradient(squared), {{0.0, -3, inf, NAN}}, {0.0, -6, inf, NAN}, d);
  }
  for (const auto& [d, name] : {std::pair(DType::f64, "square"), std::pair(DType::c64, "power")}) {
    const Traced traced = trace({Tensor::zeros({3}, d).spec()}, [&](const Tensors& x) { return Tensors{squared(x)}; });
    CHECK(traced.program.nodes.at(0).op->traits.name == std::string(name));
  }
  CHECK(contains(error_of([&] { squared({Tensor::zeros({3}, DType::i32)}); }), "[power] i32"));
}

TEST_CASE("x^(1/2) and x^(-1/2) are those of pow at zeros and infinities, and rounded once or twice elsewhere") {
  const auto half = [](const Tensors& x) { return pow(x[0], 0.5); };
  const auto inverse = [](const Tensors& x) { return pow(x[0], -0.5); };
  const std::vector<std::vector<double>> edges{{0.0, -0.0, inf, -inf, NAN, -4, 4}};
  for (const DType d : {DType::f32, DType::f64}) {
    check(half, edges, {0.0, 0.0, inf, inf, NAN, NAN, 2}, d);
    check(inverse, edges, {inf, inf, 0.0, 0.0, NAN, NAN, 0.5}, d);
    check(half, {{2, 3, 1e30, 1e-30}}, {std::sqrt(2), std::sqrt(3), 1e15, 1e-15}, d, epsilon(d) / 4);
    check(gradient(half), {{0.0, 4, 0.25, inf}}, {inf, 0.25, 1, 0}, d);
  }
}

TEST_CASE("conditions as numbers, and choices by them") {
  for (const DType d : {DType::f32, DType::f64}) {
    const std::vector<std::vector<double>> x{{-1, 2, 0.0, -0.0, inf, NAN, -inf}, {1, 2, 3, 4, 5, 6, 7}};
    check([](const Tensors& v) { return cast(v[0] > 0, v[0].dtype()); }, x, {0, 1, 0, 0, 1, 0, 0}, d);
    check([d](const Tensors& v) { return cast(cast(v[0] > 0, DType::i32), d); }, x, {0, 1, 0, 0, 1, 0, 0}, d);
    check([](const Tensors& v) { return where(v[0] > 0, v[0], v[1]); }, x, {1, 2, 3, 4, inf, 6, 7}, d);
  }
}

TEST_CASE("the derivative of softsign far out") {
  const auto slope = gradient([](const Tensors& x) { return softsign(x[0]); });
  for (const DType d : {DType::f32, DType::f64})
    check(slope, {{0, 3, -1e6, 1e15}}, {1, 0.0625, 1 / 1.000002000001e12, 1 / 1.000000000000002e30}, d, epsilon(d));
}
