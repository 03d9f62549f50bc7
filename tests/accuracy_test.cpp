// Vectorised functions against the same in higher precision, in units of the last place; and that an element's value
// does not depend on where in an array it stands.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The largest error in units of the last place, subnormal results included; what is not finite must be so exactly.
template <class T>
double worst_ulps(Tensor (*f)(Arg), long double (*exact)(long double), const std::vector<T>& x) {
  const auto y = f(Tensor::from(std::span<const T>(x), {static_cast<std::int64_t>(x.size())})).template values<T>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double right = exact(static_cast<long double>(x[i]));
    const T rounded = static_cast<T>(right), size = std::abs(rounded);
    if (!std::isfinite(rounded) || !std::isfinite(y[i])) {
      if (std::isnan(rounded) ? !std::isnan(y[i]) : rounded != y[i]) return INFINITY;
      continue;
    }
    const auto unit = static_cast<long double>(size) - static_cast<long double>(std::nextafter(size, T(0)));
    const auto least = static_cast<long double>(std::numeric_limits<T>::denorm_min());
    worst =
        std::max(worst, static_cast<double>(std::abs(static_cast<long double>(y[i]) - right) / std::max(unit, least)));
  }
  return worst;
}

/// Numbers of a type from its bits: every `step`-th pattern of f32, infinities and NaN among them, random ones of f64.
std::vector<float> sweep_single(std::uint32_t step) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffff; bits += step)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return x;
}
std::vector<double> sweep_double(std::size_t count) {
  std::vector<double> x{0.0, -0.0, INFINITY, -INFINITY, NAN};
  std::mt19937_64 generator(1);
  while (x.size() < count) x.push_back(std::bit_cast<double>(generator()));
  for (double range : {1.0, 40.0, 1500.0}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (std::size_t i = 0; i < count; ++i) x.push_back(uniform(generator));
  }
  return x;
}

long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double exact_exp(long double x) { return std::exp(x); }
long double exact_tanh(long double x) { return std::tanh(x); }
long double exact_log(long double x) { return std::log(x); }
long double exact_sin(long double x) { return std::sin(x); }
long double exact_cos(long double x) { return std::cos(x); }

}  // namespace

TEST_CASE("exp, log, tanh, sigmoid, sin and cos are within 2 units of the last place over their whole range") {
  const struct {
    const char* name;
    Tensor (*f)(Arg);
    long double (*exact)(long double);
  } cases[] = {{"exp", exp, exact_exp},    {"log", log, exact_log},
               {"tanh", tanh, exact_tanh}, {"sigmoid", sigmoid, exact_sigmoid},
               {"sin", sin, exact_sin},    {"cos", cos, exact_cos}};
  const auto single = sweep_single(4999);
  const auto wide = sweep_double(100000);
  for (const auto& c : cases) {
    const double f32 = worst_ulps(c.f, c.exact, single), f64 = worst_ulps(c.f, c.exact, wide);
    fmt::print("{:<8} worst error in units of the last place: f32 {:.2f}, f64 {:.2f}\n", c.name, f32, f64);
    CAPTURE(std::string(c.name));
    CHECK(f32 <= 2);
    CHECK(f64 <= 2);
  }
}

TEST_CASE("what comes out at the ends: infinities, zeros, NaN") {
  const Tensor x = Tensor::from<float>({-INFINITY, -1e4F, 0, 1e4F, INFINITY, NAN}, {6});
  const auto is = [](const Tensor& y, const std::vector<float>& expected) {
    const auto v = y.values<float>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK((std::isnan(expected[i]) ? std::isnan(v[i]) : v[i] == expected[i]));
    }
  };
  is(tanh(x), {-1, -1, 0, 1, 1, NAN});
  is(sigmoid(x), {0, 0, 0.5F, 1, 1, NAN});
  is(exp(x), {0, 0, 1, INFINITY, INFINITY, NAN});
  is(relu(x), {0, 0, 0, 1e4F, INFINITY, NAN});
  is(softplus(x), {0, 0, std::log(2.0F), 1e4F, INFINITY, NAN});
}

TEST_CASE("an element's value does not depend on its place") {
  const Tensor x = random({67}, 1, DType::f32, -3, 3), b = random({67}, 2, DType::f32);
  for (Tensor (*f)(Arg) :
       {+[](Arg v) { return tanh(v); }, +[](Arg v) { return sigmoid(v); }, +[](Arg v) { return exp(v); }}) {
    const Tensor all = f(x);
    for (std::int64_t i = 0; i < 67; ++i) CHECK(f(slice(x, 0, i, i + 1)).item() == all.at(i).item());
  }
  const Tensor quotient = x / b;
  for (std::int64_t i = 0; i < 67; ++i)
    CHECK((slice(x, 0, i, i + 1) / slice(b, 0, i, i + 1)).item() == quotient.at(i).item());
}

TEST_CASE("long sums keep their precision, and largest elements let NaN through") {
  const Tensor x = Tensor::full({3000000}, 0.1);
  CHECK(sum(x).item() == doctest::Approx(3000000 * static_cast<double>(0.1F)).epsilon(1e-6));
  CHECK(sum(reshape(x, {1000000, 3}), {0}).at(1).item() ==
        doctest::Approx(1000000 * static_cast<double>(0.1F)).epsilon(1e-6));
  CHECK(std::isnan(max(Tensor::from<float>({1, NAN, 2}, {3})).item()));
}
