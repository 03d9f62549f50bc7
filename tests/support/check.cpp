#include "tests/support/check.h"

#include <cmath>

namespace reel::test {

namespace {

Tensors moved(const Tensors& xs, const Tensors& direction, double step) {
  Tensors out;
  for (std::size_t i = 0; i < xs.size(); ++i)
    out.push_back(is_differentiable(xs[i].dtype()) ? xs[i] + direction[i] * step : xs[i]);
  return out;
}

Tensors variables(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) {
    if (is_differentiable(x.dtype())) out.push_back(x);
  }
  return out;
}

Tensor total(const Tensors& gradients, const Tensors& xs, const Tensors& direction) {
  Tensor sum = Tensor::zeros({}, DType::f64);
  std::size_t g = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (is_differentiable(xs[i].dtype())) sum = sum + inner(direction[i], gradients[g++]);
  }
  return sum;
}

double relative(double a, double b) { return std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b)}); }

}  // namespace

DerivativeErrors derivative_errors(const TensorFunction& f, const Tensors& xs, std::uint64_t seed, bool second) {
  Tensors v, u;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const DType dtype = is_differentiable(xs[i].dtype()) ? xs[i].dtype() : DType::f64;
    v.push_back(random(xs[i].shape(), seed + 10 * i + 1, dtype));
    u.push_back(random(xs[i].shape(), seed + 10 * i + 2, dtype));
  }
  const Tensor example = f(xs), w = random(example.shape(), seed + 3, example.dtype());
  const auto value = [&](const Tensors& at) { return inner(w, f(at)).item(); };
  const auto slope = [&](const Tensors& at) {  // <gradient, v>
    Tape tape;
    return total(grad({inner(w, f(at))}, variables(at)), at, v).item();
  };
  // Central differences at two steps, extrapolated: the error is of fourth order.
  const auto derivative = [&](const std::function<double(const Tensors&)>& g, const Tensors& direction) {
    const auto central = [&](double h) { return (g(moved(xs, direction, h)) - g(moved(xs, direction, -h))) / (2 * h); };
    constexpr double h = 1e-3;
    return (4 * central(h / 2) - central(h)) / 3;
  };

  DerivativeErrors errors;
  errors.first = relative(slope(xs), derivative(value, v));
  if (second) {
    Tape tape;
    const Tensors wrt = variables(xs);
    const Tensor s = total(grad({inner(w, f(xs))}, wrt, {.create_graph = true}), xs, v);
    errors.second = relative(total(grad({s}, wrt), xs, u).item(), derivative(slope, u));
  }
  return errors;
}

}  // namespace reel::test
