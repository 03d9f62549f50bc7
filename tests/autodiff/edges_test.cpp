// Gradients where a formula has its edges: ties, zeros, scalars.
#include <cmath>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

Tensor vector(const std::vector<double>& v) { return Tensor::from<double>(v, {std::ssize(v)}); }

Tensor gradient(const TensorFunction& f, const Tensor& x) {
  Tape tape;
  return grad({sum(f({x}))}, Tensors{x})[0];
}

}  // namespace

TEST_CASE("the gradient of a maximum or minimum is shared by those that tie") {
  const Tensor x = Tensor::from<double>({1, 3, 3, 2, 2, 2}, {2, 3}),
               shares = Tensor::from<double>({0, 0.5, 0.5, 1 / 3.0, 1 / 3.0, 1 / 3.0}, {2, 3});
  CHECK(difference(gradient([](const Tensors& in) { return max(in[0], {1}); }, x), shares) < 1e-15);
  CHECK(difference(gradient([](const Tensors& in) { return min(in[0], {1}); }, -x), shares) < 1e-15);
  CHECK(difference(gradient([](const Tensors& in) { return max(in[0]); }, x),
                   Tensor::from<double>({0, 0.5, 0.5, 0, 0, 0}, {2, 3})) < 1e-15);
  CHECK(difference(gradient([](const Tensors& in) { return max(in[0], {0}); }, x),
                   Tensor::from<double>({0, 1, 1, 1, 0, 0}, {2, 3})) < 1e-15);
}

TEST_CASE("of two that are equal, each has half of the gradient") {
  const Tensor a = vector({1, 2, 3}), b = vector({3, 2, 1});
  CHECK(difference(gradient([&](const Tensors& in) { return maximum(in[0], b); }, a), vector({0, 0.5, 1})) == 0);
  CHECK(difference(gradient([&](const Tensors& in) { return maximum(b, in[0]); }, a), vector({0, 0.5, 1})) == 0);
  CHECK(difference(gradient([&](const Tensors& in) { return minimum(in[0], b); }, a), vector({1, 0.5, 0})) == 0);
  CHECK(difference(gradient([&](const Tensors& in) { return minimum(b, in[0]); }, a), vector({1, 0.5, 0})) == 0);
}

TEST_CASE("powers of 0: by the base and by the exponent") {
  const Tensor a = vector({0, 2, 0}), b = vector({3, 3, 1});
  CHECK(difference(gradient([&](const Tensors& in) { return pow(a, in[0]); }, b), vector({0, 8 * std::log(2.0), 0})) <
        1e-14);
  CHECK(difference(gradient([&](const Tensors& in) { return pow(in[0], b); }, a), vector({0, 12, 1})) < 1e-14);
}

TEST_CASE("powers of subnormal numbers: by the base and by the exponent") {
  const double tiny = 0x1p-1040, least = 0x1p-1074, log2 = std::log(2.0);
  const Tensor a = vector({tiny, least, -tiny, tiny, tiny, tiny, 2}), b = vector({0, 0, 0, 0.5, 1, 2, 0});
  CHECK(gradient([&](const Tensors& in) { return pow(in[0], b); }, a).values<double>() ==
        std::vector<double>{0, 0, 0, 0x1p519, 1, 2 * tiny, 0});
  const Tensor c = vector({tiny, least, 2}), none = vector({0, 0, 0});
  CHECK(difference(gradient([&](const Tensors& in) { return pow(c, in[0]); }, none),
                   vector({-1040 * log2, -1074 * log2, log2})) < 1e-12);
  const Tensor z = complex(c, vector({0, 0, 0}));
  CHECK(difference(gradient([&](const Tensors& in) { return real(pow(in[0], cast(none, DType::c128))); }, z), 0 * z) ==
        0);
}

TEST_CASE("hypot, abs and sign at 0 have the gradient 0") {
  const Tensor zero = vector({0, 0}), other = vector({0, 2});
  CHECK(difference(gradient([&](const Tensors& in) { return hypot(in[0], other); }, zero), zero) == 0);
  CHECK(difference(gradient([&](const Tensors& in) { return hypot(other, in[0]); }, zero), zero) == 0);
  CHECK(difference(gradient([](const Tensors& in) { return abs(in[0]); }, zero), zero) == 0);
  CHECK(difference(gradient([](const Tensors& in) { return abs(complex(in[0], in[0])); }, zero), zero) == 0);
}

TEST_CASE("norms for p = 1, 2 and 3 have the gradients of their formulas") {
  const Tensor x = vector({1, -3, 0.5});
  const auto by = [&](double p) { return gradient([&](const Tensors& in) { return norm(in[0], p); }, x); };
  CHECK(difference(by(1), vector({1, -1, 1})) < 1e-15);
  const double two = std::sqrt(10.25), three = std::cbrt(28.125);
  CHECK(difference(by(2), vector({1 / two, -3 / two, 0.5 / two})) < 1e-15);
  CHECK(difference(by(3), vector({1, -9, 0.25}) * (1 / (three * three))) < 1e-15);
}

TEST_CASE("a real scalar that becomes complex has a real gradient") {
  const Tensor re = Tensor::full({}, 2, DType::f64), im = Tensor::full({}, 3, DType::f64);
  Tape tape;
  const Tensor z = complex(re, im);
  const Tensors g = grad({real(z * z * z)}, Tensors{re, im});  // re^3 - 3 re im^2
  REQUIRE(g[0].dtype() == DType::f64);
  REQUIRE(g[1].dtype() == DType::f64);
  CHECK(g[0].item() == doctest::Approx(3 * 4 - 3 * 9).epsilon(1e-15));
  CHECK(g[1].item() == doctest::Approx(-6 * 2 * 3).epsilon(1e-15));
}

TEST_CASE("comparisons at equality") {
  const Tensor a = Tensor::from<float>({1, 2, 3}, {3}), b = Tensor::from<float>({1, 3, 2}, {3});
  CHECK((a >= b).values<bool>() == std::vector<bool>{true, false, true});
  CHECK((a <= b).values<bool>() == std::vector<bool>{true, true, false});
  CHECK((a > b).values<bool>() == std::vector<bool>{false, false, true});
  CHECK((a < b).values<bool>() == std::vector<bool>{false, true, false});
}
