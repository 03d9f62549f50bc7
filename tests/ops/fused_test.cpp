// Functions of rows with kernels of their own against the same made of other ops: value, gradient, gradient of
// gradient. What they do at the edges: infinities, zeros, NaN, very large and very small numbers.
#include <limits>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// The functions as books write them, out of ops.
namespace reference {

Tensor shifted(const Tensor& x, const Axes& axes) { return x - max(x, axes, true); }

Tensor softmax(const Tensor& x, std::int64_t axis) {
  const Tensor e = exp(shifted(x, {axis}));
  return e / sum(e, {axis}, true);
}
Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  const Tensor s = shifted(x, {axis});
  return s - log(sum(exp(s), {axis}, true));
}
Tensor logsumexp(const Tensor& x, const Axes& axes) { return log(sum(exp(shifted(x, axes)), axes)) + max(x, axes); }
Tensor cross_entropy(const Tensor& x, const Tensor& target) { return -pick(log_softmax(x, -1), target); }
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  const Tensor centred = x - mean(x, {-1}, true);
  return centred / sqrt(mean(square(centred), {-1}, true) + epsilon) * gain + bias;
}
Tensor norm(const Tensor& x, double p, const Axes& axes) { return power(sum(power(abs(x), p), axes), 1 / p); }

}  // namespace reference

/// Value, gradients along a random cotangent, and gradients of those along random directions.
Tensors derivatives(const TensorFunction& f, const Tensors& xs) {
  Tape tape;
  const Tensor y = f(xs);
  Tensors out{y};
  const Tensors first = grad({y}, xs, {.create_graph = true, .cotangents = {random(y.shape(), 7, y.dtype())}});
  Tensor along = Tensor::zeros({}, real_of(y.dtype()));
  for (std::size_t i = 0; i < xs.size(); ++i)
    along = along + inner(random(xs[i].shape(), 8 + i, xs[i].dtype()), first[i]);
  const Tensors second = grad({along}, xs);
  out.insert(out.end(), first.begin(), first.end());
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

void check_same(const char* name, const TensorFunction& fused, const TensorFunction& composite, const Tensors& xs) {
  CAPTURE(name);
  const Tensors a = derivatives(fused, xs), b = derivatives(composite, xs);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(difference(a[i], b[i]) < (real_of(xs[0].dtype()) == DType::f64 ? 1e-13 : 2e-5));
  }
}

/// The gradients of f(x) times w, first and second (of the first times v).
std::pair<Tensor, Tensor> both_gradients(const TensorFunction& f, const Tensor& x) {
  Tape tape;
  const Tensor y = f({x});
  const auto first = grad({sum(y * random(y.shape(), 3, y.dtype()))}, {x}, {.create_graph = true});
  const auto second = grad({inner(random(x.shape(), 4, x.dtype()), first[0])}, {x});
  return {first[0], second[0]};
}

bool all_finite(const Tensor& x) { return all(is_finite(x)).values<bool>()[0]; }

}  // namespace

TEST_CASE("kernels of rows are what they are made of, in value, gradient and gradient of gradient") {
  for (DType d : {DType::f64, DType::f32}) {
    CAPTURE(name_of(d));
    for (const Shape& shape : {Shape{3, 7}, Shape{2, 3, 40}, Shape{4, 1}, Shape{37, 64}, Shape{2, 65}}) {
      const Tensor x = random(shape, 1, d, -4, 4), far = x + 300.0;
      for (std::int64_t axis : {-1, 0}) {
        for (const Tensor& at : {x, far}) {
          check_same(
              "softmax", [=](const Tensors& v) { return softmax(v[0], axis); },
              [=](const Tensors& v) { return reference::softmax(v[0], axis); }, {at});
          check_same(
              "log_softmax", [=](const Tensors& v) { return log_softmax(v[0], axis); },
              [=](const Tensors& v) { return reference::log_softmax(v[0], axis); }, {at});
          check_same(
              "logsumexp", [=](const Tensors& v) { return logsumexp(v[0], {axis}); },
              [=](const Tensors& v) { return reference::logsumexp(v[0], {axis}); }, {at});
        }
        for (double p : {2.0, 3.0, 5.0, 2.5})
          check_same(
              "norm", [=](const Tensors& v) { return norm(v[0], p, {axis}); },
              [=](const Tensors& v) { return reference::norm(v[0], p, {axis}); }, {x});
      }
      const std::int64_t n = shape[shape.rank() - 1];
      std::vector<std::int32_t> classes;
      for (std::int64_t i = 0; i < x.numel() / n; ++i) classes.push_back(static_cast<std::int32_t>(5 * i % n));
      const Tensor target = Tensor::from(std::span<const std::int32_t>(classes), shape.erase(shape.rank() - 1));
      for (const Tensor& at : {x, far})
        check_same(
            "square of cross_entropy",
            [&](const Tensors& v) { return square(cross_entropy(v[0], target, {.reduction = LossReduction::none})); },
            [&](const Tensors& v) { return square(reference::cross_entropy(v[0], target)); }, {at});
      check_same(
          "layer_norm", [](const Tensors& v) { return layer_norm(v[0], v[1], v[2], 1e-3); },
          [](const Tensors& v) { return reference::layer_norm(v[0], v[1], v[2], 1e-3); },
          {x, random({n}, 5, d), random({n}, 6, d)});
    }
  }
  const Tensor z = random({3, 5}, 9, DType::c128);
  for (double p : {2.0, 3.0, 4.0, 2.5})
    check_same(
        "complex norm", [=](const Tensors& v) { return norm(v[0], p, {-1}); },
        [=](const Tensors& v) { return reference::norm(v[0], p, {-1}); }, {z});
}

TEST_CASE("softmax: -inf has no probability, large logits do no harm, rows of -inf are NaN") {
  const Tensor x = Tensor::from<double>({1, -inf, 1, 2000, -inf, 2000, -inf, -inf, -inf}, {3, 3});
  const Tensor y = softmax(x);
  CHECK(difference(slice(y, 0, 0, 2), Tensor::from<double>({0.5, 0, 0.5, 0.5, 0, 0.5}, {2, 3})) < 1e-15);
  CHECK(all(is_nan(at(y, 2))).values<bool>()[0]);
  const Tensor log_y = log_softmax(slice(x, 0, 0, 2));
  CHECK(log_y.values<double>()[1] == -inf);
  CHECK(log_y.values<double>()[0] == -std::log(2));
  CHECK(logsumexp(x).values<double>() == std::vector<double>{1 + std::log(2), 2000 + std::log(2), -inf});
  CHECK(logsumexp(Tensor::from<double>({1, inf}, {2})).item() == inf);
  CHECK(logsumexp(Tensor::zeros({0}, DType::f64)).item() == -inf);
  for (const auto& f : {TensorFunction([](const Tensors& v) { return softmax(v[0]); }),
                        TensorFunction([](const Tensors& v) { return logsumexp(v[0]); })}) {
    const auto [first, second] = both_gradients(f, slice(x, 0, 0, 2));
    CHECK(all_finite(first));
    CHECK(all_finite(second));
    CHECK(first.values<double>()[1] == 0);
  }
  {
    Tape tape;
    const Tensor rows = slice(x, 0, 0, 2);
    CHECK(all_finite(grad({pick(log_softmax(rows), Tensor::from<std::int32_t>({0, 2}, {2}))}, {rows},
                          {.cotangents = {Tensor::full({2}, 1, DType::f64)}})[0]));
  }
}

TEST_CASE("norms: derivatives are 0 where the norm is, and no power over- or underflows") {
  Tensor x = random({3, 4}, 1);
  x.at(1).assign(Tensor::zeros({4}, DType::f64));
  for (const Tensor& v : {x, cast(x, DType::c128)}) {
    for (double p : {1.0, 1.5, 2.0, 3.0, 5.0, inf}) {
      CAPTURE(p);
      const auto [first, second] = both_gradients([=](const Tensors& t) { return norm(t[0], p, {1}); }, v);
      CHECK(all_finite(first));
      CHECK(all_finite(second));
      CHECK(difference(at(first, 1), zeros_like(at(v, 1))) == 0);
      CHECK(difference(at(second, 1), zeros_like(at(v, 1))) == 0);
    }
    const auto [first, second] = both_gradients([](const Tensors& t) { return std_dev(t[0], {1}); }, v);
    CHECK(difference(at(first, 1), zeros_like(at(v, 1))) == 0);
    CHECK(all_finite(second));
  }
  for (const auto& [d, size] : std::vector<std::pair<DType, double>>{{DType::f32, 1e-30},
                                                                     {DType::f32, 1e30},
                                                                     {DType::c64, 1e-30},
                                                                     {DType::c64, 1e30},
                                                                     {DType::f64, 1e-310},
                                                                     {DType::f64, 1e307},
                                                                     {DType::c128, 1e-300}}) {
    CAPTURE(size);
    const Tensor v = Tensor::full({4}, size, d);
    for (double p : {2.0, 5.0, 2.5, 1000.0})
      CHECK(std::abs(norm(v, p).item() / (size * std::pow(4, 1 / p)) - 1) < 1e-6);
    Tape tape;
    CHECK(difference(grad({norm(v)}, {v})[0], Tensor::full({4}, 0.5, d)) < 1e-6);
  }
  CHECK(norm(Tensor::from<double>({1, -inf}, {2}), 3).item() == inf);
  CHECK(std::isnan(norm(Tensor::from<double>({1, NAN}, {2}), 2).item()));
  CHECK(norm(Tensor::zeros({0}, DType::f64), inf).item() == 0);
}

TEST_CASE("extremes: NaN wins wherever it stands, of equal ones the first counts") {
  for (std::int64_t n : {3, 31, 64, 200, 3000}) {
    for (std::int64_t where_nan : {std::int64_t{0}, n / 2, n - 1}) {
      CAPTURE(n);
      CAPTURE(where_nan);
      std::vector<double> values;
      for (double v : random({n}, 3).values<double>()) values.push_back(v);
      values[static_cast<std::size_t>(where_nan)] = NAN;
      const Tensor x = Tensor::from(std::span<const double>(values), {n});
      const Tensor columns = transpose(stack({x, random({n}, 4)}));
      for (const Tensor& v : {x, cast(x, DType::f32)}) {
        CHECK(std::isnan(max(v).item()));
        CHECK(std::isnan(min(v).item()));
        CHECK(argmax(v).item() == static_cast<double>(where_nan));
        CHECK(argmin(v).item() == static_cast<double>(where_nan));
      }
      CHECK(std::isnan(max(columns, {0}).values<double>()[0]));
      CHECK(!std::isnan(max(columns, {0}).values<double>()[1]));
      CHECK(argmax(columns, 0).values<std::int32_t>()[0] == where_nan);
    }
    const Tensor same = Tensor::full({n}, 2, DType::f64);
    CHECK(argmax(same).item() == 0);
    CHECK(argmin(reshape(same, {n, 1}), 0).item() == 0);
  }
  CHECK(max(Tensor::full({3}, -inf, DType::f64)).item() == -inf);
  CHECK(min(Tensor::from<std::int32_t>({2147483647, 2147483647}, {2})).item() == 2147483647);
}

TEST_CASE("products with zeros have exact derivatives of any order") {
  const Tensor x = Tensor::from<double>({2, 0, 3, 5, 2, 0, 3, 0}, {2, 4});
  Tape tape;
  const auto first =
      grad({prod(x, {1})}, {x}, {.create_graph = true, .cotangents = {Tensor::full({2}, 1, DType::f64)}});
  CHECK(first[0].values<double>() == std::vector<double>{0, 30, 0, 0, 0, 0, 0, 0});
  const auto second = grad({sum(slice(first[0], 1, 1, 2))}, {x});  // d/dx1, then all
  CHECK(second[0].values<double>() == std::vector<double>{15, 0, 10, 6, 0, 0, 0, 6});
}

TEST_CASE("products neither over- nor underflow while neighbours balance each other") {
  for (const std::int64_t n : {4, 5, 7, 16}) {
    std::vector<double> x, y, ones(static_cast<std::size_t>(n), 1);
    for (std::int64_t i = 0; i < n; ++i) x.push_back(i == n - 1 && n % 2 == 1 ? 1 : i % 2 == 0 ? 0x1p600 : 0x1p-600);
    for (const double v : x) y.push_back(1 / v);
    const Tensor t = Tensor::from(std::span<const double>(x), {n}), columns = expand(unsqueeze(t, 1), {n, 3});
    CHECK(prod(t).item() == 1);
    CHECK(prod(columns, {0}).values<double>() == std::vector<double>(3, 1));
    Tape tape;
    CHECK(grad({prod(t)}, {t})[0].values<double>() == y);
  }
  CHECK(prod(Tensor::from<float>({0x1p100F, 0x1p100F, 0x1p-100F, 0x1p-100F}, {4})).item() == 1);
  const Tensor x = Tensor::full({8}, 1.1, DType::f32);  // as f64 has it, rounded once
  CHECK(prod(x).values<float>()[0] == static_cast<float>(std::pow(static_cast<double>(1.1F), 8)));
  CHECK(prod(Tensor::from<std::int32_t>({3, -5, 7}, {3})).values<std::int32_t>()[0] == -105);
}

TEST_CASE("sums keep their precision, and integers wrap") {
  const Tensor x = Tensor::full({3, 1000003}, 0.1, DType::f32);
  CHECK(std::abs(sum(x).item() / (0.1F * 3000009.0) - 1) < 2e-7);
  CHECK(std::abs(sum(x, {1}).values<float>()[2] / (0.1F * 1000003.0) - 1) < 2e-7);
  CHECK(std::abs(sum(transpose(x), {0}).values<float>()[2] / (0.1F * 1000003.0) - 1) < 2e-7);
  CHECK(std::abs(cumsum(x).values<float>()[1000002] / (0.1F * 1000003.0) - 1) < 2e-7);
  CHECK(std::abs(at(standardize(x + 1e4), 0).values<float>()[5]) < 1);
  const Tensor outer = Tensor::full({100003, 2, 3}, 0.1, DType::f32);  // the sum of an axis, then another around it
  CHECK(std::abs(sum(outer, {0, 2}).values<float>()[1] / (0.1F * 300009.0) - 1) < 2e-7);
  CHECK(std::abs(sum(cast(outer, DType::c64), {0, 2}).values<std::complex<float>>()[1].real() / (0.1F * 300009.0) - 1) <
        2e-7);
  CHECK(sum(Tensor::full({4}, 2147483647, DType::i32)).item() == -4);
}
