// Elementwise ops against the scalar functions of the standard library, in complex arithmetic where they have one.
#include <algorithm>
#include <numbers>

#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

struct UnaryRows {
  Cases& cases;
  void operator()(const char* op, const TensorFunction& f, const std::vector<DType>& dtypes, double low, double high,
                  const std::function<Complex(Complex)>& value) const {
    for (const Shape& shape : {Shape{3, 7}, Shape{33}, Shape{}, Shape{1}, Shape{0, 3}})
      cases.push_back(
          {op, f, [=](DType d) { return Tensors{input(shape, 11, d, low, high)}; }, dtypes, pointwise(value)});
  }
  void operator()(const char* op, Tensor (*f)(Arg), const std::vector<DType>& dtypes, double low, double high,
                  const std::function<Complex(Complex)>& value) const {
    (*this)(
        op, [f](const Tensors& x) { return f(x[0]); }, dtypes, low, high, value);
  }
};

struct BinaryRows {
  Cases& cases;
  void operator()(const char* op, Tensor (*f)(Arg, Arg), const std::vector<DType>& dtypes, double low, double high,
                  const std::function<Complex(Complex, Complex)>& value, double shift_b = 0) const {
    const std::vector<std::pair<Shape, Shape>> shapes{{{3, 7}, {3, 7}}, {{3, 7}, {7}},       {{3, 7}, {3, 1}},
                                                      {{}, {3, 2}},     {{2, 1, 5}, {4, 1}}, {{1}, {1}},
                                                      {{0, 3}, {3}},    {{2, 0}, {2, 1}}};
    for (const auto& [a, b] : shapes)
      cases.push_back({op, [f](const Tensors& x) { return f(x[0], x[1]); },
                       [=, a = a, b = b](DType d) {
                         return Tensors{input(a, 21, d, low, high), input(b, 22, d, low + shift_b, high + shift_b)};
                       },
                       dtypes, pointwise(value)});
  }
};

double re(Complex x) { return x.real(); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
Complex unit(Complex x) { return x == 0.0 ? 0 : x / std::abs(x); }

void functions(const UnaryRows& unary) {
  unary("neg", neg, all_numbers, -2, 2, [](Complex x) { return -x; });
  for (double sign : {-1, 1}) {  // a kink at 0 is kept away from
    const double low = sign < 0 ? -2 : 0.1, high = sign < 0 ? -0.1 : 2;
    unary("abs", abs, all_numbers, low, high, [](Complex x) { return std::abs(x); });
    unary("sign", reel::sign, all_numbers, low, high, unit);
    unary("relu", relu, ordered, low, high, [](Complex x) { return std::max(0.0, re(x)); });
  }
  unary("square", square, all_numbers, -2, 2, [](Complex x) { return x * x; });
  unary("reciprocal", reciprocal, fields, 0.5, 2, [](Complex x) { return 1.0 / x; });
  unary("sqrt", sqrt, fields, 0.5, 3, [](Complex x) { return std::sqrt(x); });
  unary("rsqrt", rsqrt, fields, 0.5, 3, [](Complex x) { return 1.0 / std::sqrt(x); });
  unary("exp", exp, fields, -2, 2, [](Complex x) { return std::exp(x); });
  unary("expm1", expm1, fields, -2, 2, [](Complex x) { return std::exp(x) - 1.0; });
  unary("log", log, fields, 0.5, 3, [](Complex x) { return std::log(x); });
  unary("log1p", log1p, fields, -0.5, 2, [](Complex x) { return std::log(1.0 + x); });
  unary("sin", sin, fields, -2, 2, [](Complex x) { return std::sin(x); });
  unary("cos", cos, fields, -2, 2, [](Complex x) { return std::cos(x); });
  unary("tan", tan, fields, -1, 1, [](Complex x) { return std::tan(x); });
  unary("asin", asin, fields, -0.6, 0.6, [](Complex x) { return std::asin(x); });
  unary("acos", acos, fields, -0.6, 0.6, [](Complex x) { return std::acos(x); });
  unary("atan", atan, fields, -0.7, 0.7, [](Complex x) { return std::atan(x); });
  unary("sinh", sinh, fields, -2, 2, [](Complex x) { return std::sinh(x); });
  unary("cosh", cosh, fields, -2, 2, [](Complex x) { return std::cosh(x); });
  unary("tanh", tanh, fields, -1, 1, [](Complex x) { return std::tanh(x); });
  unary("sigmoid", sigmoid, reals, -5, 5, [](Complex x) { return 1 / (1 + std::exp(-re(x))); });
  unary("erf", erf, reals, -2, 2, [](Complex x) { return std::erf(re(x)); });
  unary("softplus", softplus, reals, -5, 5, [](Complex x) { return std::log1p(std::exp(re(x))); });
  unary("gelu", gelu, reals, -3, 3, [](Complex x) { return re(x) * normal_cdf(re(x)); });
  unary("silu", silu, reals, -3, 3, [](Complex x) { return re(x) / (1 + std::exp(-re(x))); });
  unary("softsign", softsign, reals, 0.1, 3, [](Complex x) { return x / (1 + std::abs(x)); });
  unary("floor", floor, reals, 0.1, 0.9, [](Complex x) { return std::floor(re(x)); });
  unary("ceil", ceil, reals, -1.9, -1.1, [](Complex x) { return std::ceil(re(x)); });
  unary("round", round, reals, 0.6, 1.4, [](Complex x) { return std::round(re(x)); });
  unary("trunc", trunc, reals, -1.9, -1.1, [](Complex x) { return std::trunc(re(x)); });
  unary("conj", conj, complexes, -2, 2, [](Complex x) { return std::conj(x); });
  unary("imag", imag, complexes, -2, 2, [](Complex x) { return x.imag(); });
  unary("angle", angle, complexes, 0.3, 2, [](Complex x) { return std::arg(x); });
  unary("real", real, fields, -2, 2, [](Complex x) { return x.real(); });
  unary("is_nan", is_nan, fields, -2, 2, [](Complex) { return 0; });
  unary("is_inf", is_inf, fields, -2, 2, [](Complex) { return 0; });
  unary("is_finite", is_finite, fields, -2, 2, [](Complex) { return 1; });
  unary("logical_not", logical_not, {DType::boolean}, 0, 1, [](Complex x) { return 1.0 - x; });
}

void functions_with_parameters(const UnaryRows& unary) {
  const auto f = [](auto&& call) { return [=](const Tensors& x) { return call(Arg(x[0])); }; };
  unary("affine", f([](Arg x) { return 3 - x * 2; }), all_numbers, -2, 2, [](Complex x) { return 3.0 - 2.0 * x; });
  unary("affine", f([](Arg x) { return affine(x, -2, 3); }), all_numbers, -2, 2,
        [](Complex x) { return 3.0 - 2.0 * x; });
  for (double sign : {-1, 1}) {
    const double low = sign < 0 ? -2 : 0.1, high = sign < 0 ? -0.1 : 2;
    unary("leaky_relu", f([](Arg x) { return leaky_relu(x, 0.2); }), reals, low, high,
          [](Complex x) { return re(x) > 0 ? re(x) : 0.2 * re(x); });
    unary("elu", f([](Arg x) { return elu(x, 0.7); }), reals, low, high,
          [](Complex x) { return re(x) > 0 ? re(x) : 0.7 * std::expm1(re(x)); });
  }
  for (double low : {-2.0, -0.4, 0.6})  // below, within, above
    unary("clamp", f([](Arg x) { return clamp(x, -0.5, 0.5); }), reals, low, low + 0.8,
          [](Complex x) { return std::clamp(re(x), -0.5, 0.5); });
  for (double e : {-3.0, -1.0, 0.0, 1.0, 2.0, 5.0, 0.5, 1.7, -0.3})
    unary(
        "power", [e](const Tensors& x) { return pow(x[0], e); }, fields, 0.5, 2,
        [e](Complex x) { return std::pow(x, e); });
  // Differences of values know the factor 1 alone; tests/cells/lt_rnn_test.cpp looks at others.
  unary("scale_gradient", f([](Arg x) { return scale_gradient(x, 1); }), fields, -2, 2, [](Complex x) { return x; });
  unary("scale_gradient", f([](Arg x) { return scale_gradient(scale_gradient(x, 4), 0.25); }), fields, -2, 2,
        [](Complex x) { return x; });
  unary("power", f([](Arg x) { return pow(x, 3); }), fields, -2, -0.5, [](Complex x) { return x * x * x; });
}

void of_two(const BinaryRows& binary) {
  binary(
      "add", [](Arg a, Arg b) { return a + b; }, all_numbers, -2, 2, [](Complex a, Complex b) { return a + b; });
  binary(
      "sub", [](Arg a, Arg b) { return a - b; }, all_numbers, -2, 2, [](Complex a, Complex b) { return a - b; });
  binary(
      "mul", [](Arg a, Arg b) { return a * b; }, all_numbers, -2, 2, [](Complex a, Complex b) { return a * b; });
  binary(
      "div", [](Arg a, Arg b) { return a / b; }, fields, 0.5, 2, [](Complex a, Complex b) { return a / b; });
  binary(
      "pow", [](Arg a, Arg b) { return pow(a, b); }, fields, 0.5, 2,
      [](Complex a, Complex b) { return std::exp(b * std::log(a)); });
  binary("maximum", maximum, ordered, -2, 2, [](Complex a, Complex b) { return std::max(re(a), re(b)); });
  binary("relu_backward", relu_backward, reals, 0.1, 2, [](Complex a, Complex) { return a; });
  binary("tanh_backward", tanh_backward, reals, -2, 2, [](Complex a, Complex b) { return a * (1.0 - b * b); });
  binary("sigmoid_backward", sigmoid_backward, reals, -2, 2, [](Complex a, Complex b) { return a * b * (1.0 - b); });
  binary("minimum", minimum, ordered, -2, 2, [](Complex a, Complex b) { return std::min(re(a), re(b)); });
  for (double shift_b : {-1.0, -5.0})
    binary(
        "remainder", remainder, reals, 2.8, 3.2,
        [](Complex a, Complex b) { return re(a) - re(b) * std::floor(re(a) / re(b)); }, shift_b);
  binary("atan2", atan2, reals, 0.3, 2, [](Complex a, Complex b) { return std::atan2(re(a), re(b)); });
  binary("hypot", hypot, reals, 0.3, 2, [](Complex a, Complex b) { return std::sqrt(re(a * a + b * b)); });
  binary("complex", complex, reals, -2, 2, [](Complex a, Complex b) { return Complex(re(a), re(b)); });
  binary("polar of numbers", polar, reals, 0.5, 2, [](Complex a, Complex b) { return std::polar(re(a), re(b)); });
  binary("equal", equal, every, -2, 2, [](Complex a, Complex b) { return a == b; });
  binary("not_equal", not_equal, every, -2, 2, [](Complex a, Complex b) { return a != b; });
  binary(
      "less", [](Arg a, Arg b) { return a < b; }, ordered, -2, 2, [](Complex a, Complex b) { return re(a) < re(b); });
  binary(
      "less_equal", [](Arg a, Arg b) { return a <= b; }, ordered, -2, 2,
      [](Complex a, Complex b) { return re(a) <= re(b); });
  binary("logical_and", logical_and, {DType::boolean}, 0, 1, [](Complex a, Complex b) { return re(a) * re(b); });
  binary("logical_or", logical_or, {DType::boolean}, 0, 1, [](Complex a, Complex b) { return std::max(re(a), re(b)); });
  binary("logical_xor", logical_xor, {DType::boolean}, 0, 1, [](Complex a, Complex b) { return re(a) != re(b); });
}

/// modReLU in the forms of the sources, on units that are off (|z| below -b) and on.
void modrelus(Cases& cases) {
  const ModReluOptions all[] = {
      {}, {.divide = 1e-5}, {.inside = 1e-5, .divide = 1e-5}, {.shift = 0.01}, {.shift = 0.01, .divide = 0.01}};
  for (const ModReluOptions& o : all) {
    for (double low : {0.3, 1.0})
      cases.push_back({"modrelu", [o](const Tensors& x) { return modrelu(x[0], real(x[1]), o); },
                       [low](DType d) {
                         return Tensors{input({4, 6}, 31, d, low, low + 0.3), input({6}, 32, real_of(d), -0.95, -0.9)};
                       },
                       fields,
                       [o](const Tensors& in, const Tensor& out) {
                         const auto z = elements(in[0]), b = elements(expand(in[1], out.shape())), y = elements(out);
                         double worst = 0;
                         for (std::size_t i = 0; i < z.size(); ++i) {
                           const double r = std::sqrt(std::norm(z[i]) + o.inside);
                           const Complex expected = z[i] / (r + o.divide) * std::max(0.0, r + o.shift + re(b[i]));
                           worst = std::max(worst, std::abs(y[i] - expected));
                         }
                         return worst;
                       }});
  }
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  functions({cases});
  functions_with_parameters({cases});
  of_two({cases});
  modrelus(cases);
  for (DType to : all_dtypes)
    cases.push_back({"cast", [to](const Tensors& x) { return cast(x[0], to); },
                     [](DType d) {
                       return Tensors{input({3, 5}, 12, d)};
                     },
                     every, pointwise([to](Complex x) -> Complex {
                       if (to == DType::boolean) return x != 0.0;
                       return to == DType::i32 ? std::trunc(re(x)) : is_complex(to) ? x : re(x);
                     })});
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 2}, Shape{1, 1}})
    cases.push_back({"where", [](const Tensors& x) { return where(x[0], x[1], x[2]); },
                     [=](DType d) {
                       return Tensors{input(shape, 31, DType::boolean), input(shape, 32, d), input(shape, 33, d)};
                     },
                     every, listed([](const auto& in) {
                       std::vector<Complex> y;
                       for (std::size_t i = 0; i < in[0].size(); ++i)
                         y.push_back(in[0][i] == 1.0 ? in[1][i] : in[2][i]);
                       return y;
                     })});
});

}  // namespace

}  // namespace reel::test
