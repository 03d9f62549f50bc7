#include "tests/op_cases.h"

namespace reel::test {

namespace {

const std::vector<DType> reals{DType::f32, DType::f64}, fields{DType::f32, DType::f64, DType::c64, DType::c128},
    ordered{DType::f32, DType::f64, DType::i32}, numbers_{DType::f32, DType::f64, DType::c64, DType::c128, DType::i32},
    all(std::begin(all_dtypes), std::end(all_dtypes));

/// One random tensor; integers are drawn from -8..8.
Tensor input(const Shape& shape, std::uint64_t seed, DType dtype, double low, double high) {
  if (dtype == DType::i32) return cast(random(shape, seed, DType::f64, -8, 8), dtype);
  if (dtype == DType::boolean) return random(shape, seed) > 0;
  return random(shape, seed, dtype, low, high);
}

Tensor indices(const Shape& shape, std::int64_t n) {
  std::vector<std::int32_t> v;
  Stream s(5, 5);
  for (std::int64_t i = 0; i < shape.numel(); ++i) v.push_back(static_cast<std::int32_t>(s.below(n)));
  return Tensor::from<std::int32_t>(v, shape);
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const auto unary = [&](const char* op, Tensor (*f)(Arg), const std::vector<DType>& dtypes, double low = -2,
                         double high = 2) {
    for (const Shape& shape : {Shape{3, 7}, Shape{33}, Shape{}, Shape{1}, Shape{0, 3}})
      cases.push_back({op, [f](const Tensors& x) { return f(x[0]); },
                       [=](DType d) { return Tensors{input(shape, 11, d, low, high)}; }, dtypes});
  };
  unary("neg", neg, numbers_);
  unary(
      "affine", [](Arg x) { return 3 - x * 2; }, numbers_);
  unary(
      "affine", [](Arg x) { return affine(x, -2, 3); }, numbers_);
  unary("conj", conj, {DType::c64, DType::c128});
  unary("abs", abs, ordered, 0.1, 2);
  unary("abs", abs, ordered, -2, -0.1);
  unary("sign", sign, ordered, 0.1, 2);
  unary("square", square, numbers_);
  unary("reciprocal", reciprocal, fields, 0.5, 2);
  unary("sqrt", sqrt, reals, 0.5, 3);
  unary("exp", exp, reals);
  unary("log", log, reals, 0.5, 3);
  unary("sin", sin, reals);
  unary("cos", cos, reals);
  unary("tanh", tanh, reals);
  unary("sigmoid", sigmoid, reals, -5, 5);
  unary("softplus", softplus, reals, -5, 5);
  unary("relu", relu, ordered, 0.1, 2);
  unary("relu", relu, ordered, -2, -0.1);
  unary(
      "leaky_relu", [](Arg x) { return leaky_relu(x, 0.2); }, reals, 0.1, 2);
  unary(
      "leaky_relu", [](Arg x) { return leaky_relu(x, 0.2); }, reals, -2, -0.1);
  unary(
      "elu", [](Arg x) { return elu(x, 0.7); }, reals, 0.1, 2);
  unary(
      "elu", [](Arg x) { return elu(x, 0.7); }, reals, -2, -0.1);
  for (DType to : all_dtypes)
    cases.push_back({"cast", [to](const Tensors& x) { return cast(x[0], to); },
                     [](DType d) {
                       return Tensors{input({3, 5}, 12, d, -2, 2)};
                     },
                     all});

  const auto binary = [&](const char* op, Tensor (*f)(Arg, Arg), const std::vector<DType>& dtypes, double low_b = -2,
                          double high_b = 2) {
    const std::vector<std::pair<Shape, Shape>> shapes{{{3, 7}, {3, 7}}, {{3, 7}, {7}},       {{3, 7}, {3, 1}},
                                                      {{}, {3, 2}},     {{2, 1, 5}, {4, 1}}, {{1}, {1}},
                                                      {{0, 3}, {3}},    {{2, 0}, {2, 1}}};
    for (const auto& [a, b] : shapes)
      cases.push_back({op, [f](const Tensors& x) { return f(x[0], x[1]); },
                       [=, a = a, b = b](DType d) {
                         return Tensors{input(a, 21, d, -2, 2), input(b, 22, d, low_b, high_b)};
                       },
                       dtypes});
  };
  binary(
      "add", [](Arg a, Arg b) { return a + b; }, numbers_);
  binary(
      "sub", [](Arg a, Arg b) { return a - b; }, numbers_);
  binary(
      "mul", [](Arg a, Arg b) { return a * b; }, numbers_);
  binary(
      "div", [](Arg a, Arg b) { return a / b; }, fields, 0.5, 2);
  binary("maximum", maximum, ordered);
  binary("minimum", minimum, ordered);
  binary("equal", equal, all);
  binary("not_equal", not_equal, all);
  binary(
      "less", [](Arg a, Arg b) { return a < b; }, ordered);
  binary(
      "less_equal", [](Arg a, Arg b) { return a <= b; }, ordered);

  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 2}, Shape{1, 1}})
    cases.push_back({"where", [](const Tensors& x) { return where(x[0], x[1], x[2]); },
                     [=](DType d) {
                       return Tensors{input(shape, 31, DType::boolean, 0, 0), input(shape, 32, d, -2, 2),
                                      input(shape, 33, d, -2, 2)};
                     },
                     all});

  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{-1}, Axes{0, 2}, Axes{1, 2}, Axes{0, 1}}) {
    for (const Shape& shape : {Shape{3, 4, 5}, Shape{1, 1, 1}, Shape{2, 70, 40}}) {
      cases.push_back({"sum", [=](const Tensors& x) { return sum(x[0], axes); },
                       [=](DType d) { return Tensors{input(shape, 41, d, -2, 2)}; }, numbers_});
      if (shape.numel() < 1000)  // finite differences must not move the largest past the next
        cases.push_back({"max", [=](const Tensors& x) { return max(x[0], axes); },
                         [=](DType d) { return Tensors{input(shape, 42, d, -2, 2)}; }, ordered});
    }
  }
  cases.push_back({"sum", [](const Tensors& x) { return sum(x[0], {0}); },
                   [](DType d) {
                     return Tensors{input({0, 3}, 43, d, 0, 1)};
                   },
                   numbers_});
  cases.push_back({"max", [](const Tensors& x) { return max(x[0], {1}); },
                   [](DType d) {
                     return Tensors{input({0, 3}, 43, d, 0, 1)};
                   },
                   ordered});
  for (const Shape& shape : {Shape{3, 5}, Shape{4}, Shape{0, 2}, Shape{1, 1}})
    cases.push_back({"argmax", [](const Tensors& x) { return argmax(x[0]); },
                     [=](DType d) { return Tensors{input(shape, 44, d, -2, 2)}; }, ordered});

  const auto layout = [&](const char* op, const TensorFunction& f, const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes)
      cases.push_back({op, f, [=](DType d) { return Tensors{input(shape, 51, d, -2, 2)}; }, all});
  };
  layout("reshape", [](const Tensors& x) { return reshape(x[0], {2, -1}); }, {{4, 3}, {2}, {2, 0, 1, 3}, {2, 1}});
  layout("permute", [](const Tensors& x) { return permute(x[0], {2, 0, 1}); }, {{2, 3, 4}, {1, 1, 1}, {0, 2, 3}});
  layout("permute", [](const Tensors& x) { return transpose(x[0]); }, {{3, 4}, {1, 5}, {2, 3, 4}});
  layout("expand", [](const Tensors& x) { return expand(x[0], {2, 3, 4}); }, {{4}, {3, 1}, {}, {2, 1, 4}, {1, 1}});
  layout("slice_leading", [](const Tensors& x) { return slice(x[0], 0, 1, 2); }, {{3, 4}, {2}, {2, 0}});
  layout("slice", [](const Tensors& x) { return slice(x[0], -1, 1, 3); }, {{3, 4}, {2, 3, 5}, {0, 3}});
  layout("slice", [](const Tensors& x) { return slice(x[0], 1, 2, 2); }, {{3, 4}});
  layout("pad", [](const Tensors& x) { return pad(x[0], 1, 2, 1); }, {{3, 4}, {2, 3, 5}, {0, 3}, {2, 0}});
  layout("pad", [](const Tensors& x) { return pad(x[0], 0, 0, 3); }, {{3, 4}, {2}});
  layout("roll", [](const Tensors& x) { return roll(x[0], 1); }, {{3, 4}, {5}, {2, 1}, {2, 0}});
  layout("roll", [](const Tensors& x) { return roll(x[0], -7, 0); }, {{3, 4}, {5}, {1, 2}});
  for (int axis : {0, 1, -1})
    cases.push_back({"concat", [=](const Tensors& x) { return concat(x, axis); },
                     [](DType d) {
                       return Tensors{input({2, 3, 4}, 61, d, -2, 2), input({2, 3, 4}, 62, d, -2, 2),
                                      input({2, 3, 4}, 63, d, -2, 2)};
                     },
                     all});
  cases.push_back(
      {"concat", [](const Tensors& x) { return concat(x, 1); },
       [](DType d) {
         return Tensors{input({2, 3}, 61, d, -2, 2), input({2, 0}, 62, d, -2, 2), input({2, 1}, 63, d, -2, 2)};
       },
       all});

  for (const Shape& shape : {Shape{4, 3}, Shape{5}, Shape{}, Shape{0}}) {
    cases.push_back({"embedding", [](const Tensors& x) { return embedding(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{indices(shape, 6), input({6, 2}, 71, d, -2, 2)};
                     },
                     all});
    cases.push_back({"scatter_add", [](const Tensors& x) { return scatter_add(x[0], x[1], 6); },
                     [=](DType d) {
                       return Tensors{indices(shape, 6), input(shape.insert(shape.rank(), 2), 72, d, -2, 2)};
                     },
                     numbers_});
    cases.push_back({"pick", [](const Tensors& x) { return pick(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{input(shape.insert(shape.rank(), 5), 73, d, -2, 2), indices(shape, 5)};
                     },
                     all});
    cases.push_back({"place", [](const Tensors& x) { return place(x[0], x[1], 5); },
                     [=](DType d) {
                       return Tensors{input(shape, 74, d, -2, 2), indices(shape, 5)};
                     },
                     all});
  }

  for (int flags = 0; flags < 4; ++flags) {
    const bool ta = (flags & 1) != 0, tb = (flags & 2) != 0;
    const auto product = [&](Shape a, Shape b) {
      const auto swap_last = [](Shape s) {
        std::swap(s[s.rank() - 1], s[s.rank() - 2]);
        return s;
      };
      if (ta) a = swap_last(a);
      if (tb) b = swap_last(b);
      cases.push_back({"matmul",
                       [=](const Tensors& x) {
                         return matmul(x[0], x[1], {ta, tb});
                       },
                       [=](DType d) {
                         return Tensors{input(a, 81, d, -1, 1), input(b, 82, d, -1, 1)};
                       },
                       fields});
    };
    product({3, 4}, {4, 2});
    product({1, 1}, {1, 1});
    product({2, 0}, {0, 3});
    product({0, 2}, {2, 3});
    product({2, 3, 4}, {2, 4, 5});
    product({2, 3, 4}, {4, 5});
    product({3, 4}, {2, 4, 5});
    product({2, 3, 3, 4}, {2, 3, 4, 2});
  }
  return cases;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace reel::test
