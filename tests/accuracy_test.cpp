// Vectorised functions against the same in higher precision, in units of the last place; and that an element's value
// does not depend on where in an array it stands.
#include <cmath>

#include "tests/check.h"

using namespace reel;
using namespace reel::test;

namespace {

template <class T>
double worst_ulps(Tensor (*f)(Arg), long double (*exact)(long double), double low, double high) {
  constexpr std::int64_t n = 200001;
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<T>(low + (high - low) * static_cast<double>(i) / (n - 1)));
  const auto y = f(Tensor::from<T>(x, {n})).template values<T>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double right = exact(static_cast<long double>(x[i]));
    const T rounded = static_cast<T>(right);
    if (rounded == 0 || !std::isnormal(rounded)) continue;
    const long double unit = std::abs(static_cast<long double>(std::nextafter(rounded, static_cast<T>(INFINITY))) -
                                      static_cast<long double>(rounded));
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(y[i]) - right) / unit));
  }
  return worst;
}

long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double exact_exp(long double x) { return std::exp(x); }
long double exact_tanh(long double x) { return std::tanh(x); }
long double exact_log(long double x) { return std::log(x); }

}  // namespace

TEST_CASE("exp, tanh, sigmoid and log are within 2 units of the last place") {
  const struct {
    const char* name;
    Tensor (*f)(Arg);
    long double (*exact)(long double);
    double low, high;
  } cases[] = {{"exp", exp, exact_exp, -80, 80},           {"exp", exp, exact_exp, -1, 1},
               {"tanh", tanh, exact_tanh, -10, 10},        {"tanh", tanh, exact_tanh, -0.7, 0.7},
               {"tanh", tanh, exact_tanh, -1e-3, 1e-3},    {"sigmoid", sigmoid, exact_sigmoid, -80, 20},
               {"sigmoid", sigmoid, exact_sigmoid, -5, 5}, {"log", log, exact_log, 1e-6, 10}};
  for (const auto& c : cases) {
    CAPTURE(std::string(c.name));
    CAPTURE(c.high);
    CHECK(worst_ulps<float>(c.f, c.exact, c.low, c.high) <= 2);
    CHECK(worst_ulps<double>(c.f, c.exact, c.low, c.high) <= 2);
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
