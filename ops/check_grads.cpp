#include "ops/check_grads.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/autodiff/primitives.h"

namespace reel {
namespace {

/// xs + step times a direction; an input whose direction is undefined stays.
Tensors moved(const Tensors& xs, const Tensors& direction, double step) {
  Tensors out;
  for (std::size_t i = 0; i < xs.size(); ++i)
    out.push_back(direction[i].defined() ? xs[i] + direction[i] * step : xs[i]);
  return out;
}

/// Re sum conj(w) x, a real scalar.
Tensor inner(const Tensor& w, const Tensor& x) { return real(sum(conj(w) * x)); }

/// The derivative of a real scalar along a direction, by its gradient.
Tensor slope(const Tensor& of, const Tensors& xs, const Tensors& direction, bool create_graph, double* size = nullptr) {
  Tensors wrt, along;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (direction[i].defined()) wrt.push_back(xs[i]), along.push_back(direction[i]);
  }
  const Tensors gradients = grad({of}, wrt, {.create_graph = create_graph});
  Tensor total = Tensor::zeros({}, DType::f64);
  for (std::size_t g = 0; g < wrt.size(); ++g) {
    total = total + inner(along[g], gradients[g]);
    if (size) *size += sum(abs(along[g]) * abs(gradients[g])).item();
  }
  return total;
}

constexpr double step = 1e-3;  // of the differences

struct Difference {
  double quotient;
  double steep;  // the mean of |slope| to both sides: at a minimum it tells how exact a quotient of 0 can be
};
/// Central differences at two steps, extrapolated: the error is of fourth order. `here` is f(xs).
Difference difference(const std::function<double(const Tensors&)>& f, double here, const Tensors& xs,
                      const Tensors& direction) {
  const auto at = [&](double h) { return f(moved(xs, direction, h)); };
  const double right = at(step), left = at(-step);
  const double near = (at(step / 2) - at(-step / 2)) / step, far = (right - left) / (2 * step);
  return {(4 * near - far) / 3, (std::abs(right - here) + std::abs(left - here)) / (2 * step)};
}

/// The rounding error of difference() for sums of numbers that are `size` together. Each of its values has an
/// error of d = 16 eps size: an op has some eps, the product with w one, the blocks of a sum the rest. central(h) then
/// has d / h, so that the quotient has (4 * 2 d / step + d / step) / 3 = 3 d / step.
double rounding(double size) { return 3 * 16 * std::numeric_limits<double>::epsilon() * size / step; }

/// How far a derivative and a difference quotient are apart beyond its rounding error, relative to the largest slope.
double relative(double a, const Difference& b, double size) {
  const double apart = std::abs(a - b.quotient) - rounding(size);
  if (!std::isfinite(apart)) return INFINITY;
  return apart <= 0 ? 0 : apart / std::max({std::abs(a), std::abs(b.quotient), b.steep});
}

/// Elements in [-1, 1], complex ones in the square.
Tensor random_like(const Tensor& x, std::uint64_t seed) {
  const Tensor re = uniform(x.shape(), -1, 1, seed, 1, DType::f64);
  return is_complex(x.dtype()) ? complex(re, uniform(x.shape(), -1, 1, seed, 2, DType::f64)) : re;
}

bool is_input(const Tensor& x) { return is_differentiable(x.dtype()); }

/// How far an input moves: as far as its elements are large where they are far from 1, so that log(1e-4) has a
/// difference quotient, and 1e8 moves at all.
double reach(const Tensor& x) {
  const double largest = x.numel() == 0 ? 1 : max(abs(x)).item();
  return largest < 0.01 || largest > 1e4 ? (largest == 0 || !std::isfinite(largest) ? 1 : largest) : 1;
}

/// A random direction of each differentiable input, or of the one that is chosen.
Tensors random_direction(const Tensors& xs, std::uint64_t seed, std::ptrdiff_t chosen) {
  Tensors out(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (is_input(xs[i]) && (chosen < 0 || static_cast<std::size_t>(chosen) == i))
      out[i] = random_like(xs[i], seed + 10 * i) * reach(xs[i]);
  }
  return out;
}

/// f(xs) on a tape of its own, as f may ask for a gradient.
Tensor value_of(const TensorFunction& f, const Tensors& xs) {
  Tape tape;
  return f(xs);
}

/// grad_errors along directions of one input, or of all.
GradErrors errors_of(const TensorFunction& f, const Tensors& xs, std::uint64_t seed, bool second,
                     std::ptrdiff_t chosen) {
  const Tensors v = random_direction(xs, seed + 1, chosen), u = random_direction(xs, seed + 2, chosen);
  const Tensor y = value_of(f, xs), w = random_like(y, seed + 3);
  const double size = y.numel() == 0 ? 0 : sum(abs(w) * abs(y)).item();
  const auto value = [&](const Tensors& at) { return inner(w, value_of(f, at)).item(); };
  const auto slope_at = [&](const Tensors& at) {
    Tape tape;
    return slope(inner(w, f(at)), at, v, false).item();
  };
  GradErrors errors;
  const double first = slope_at(xs);
  errors.first = relative(first, difference(value, inner(w, y).item(), xs, v), size);
  if (second) {
    Tape tape;
    double terms = 0;
    const Tensor once = slope(inner(w, f(xs)), xs, v, true, &terms);
    errors.second =
        relative(slope(once, xs, u, false).item(), difference(slope_at, first, xs, u), std::max(size, terms));
  }
  return errors;
}

/// The same values as tensors of their own: what f sees otherwise, such as a parameter that is also an input, stays.
Tensors apart(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(primitive::reshape(x, x.shape()));
  return out;
}

}  // namespace

GradErrors grad_errors(const TensorFunction& f, const Tensors& xs, std::uint64_t seed, bool second) {
  return errors_of(f, apart(xs), seed, second, -1);
}

void check_grads(const TensorFunction& f, const Tensors& inputs, const CheckGrads& check, Loc where) {
  const NoGrad outer;  // a tape of the caller has nothing to do with this
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined()) fail("check_grads", where, "input {} is an undefined tensor", i);
  const Tensors xs = apart(inputs);
  if (check.order != 1 && check.order != 2) fail("check_grads", where, "order is 1 or 2; got {}", check.order);
  if (!(check.tolerance > 0)) fail("check_grads", where, "tolerance is above 0; got {}", check.tolerance);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].dtype() == DType::f32 || xs[i].dtype() == DType::c64)
      fail("check_grads", where, "f64 and c128 are precise enough for differences; input {} is {}", i,
           xs[i].spec().str());
  }
  if (std::none_of(xs.begin(), xs.end(), is_input)) fail("check_grads", where, "no input has a gradient");
  const Tensor y = value_of(f, xs), again = value_of(f, xs);
  if (!y.defined() || !again.defined()) fail("check_grads", where, "the result of f is an undefined tensor");
  if (y.dtype() != DType::f64 && y.dtype() != DType::c128)
    fail("check_grads", where, "f64 and c128 are precise enough for differences; the result is {}", y.spec().str());
  if (!(y.shape() == again.shape()) || any(not_equal(y, again)).item() != 0)
    fail("check_grads", where, "f must be finite and the same each time; it gives {} and then {}", y.str(),
         again.str());
  const auto all = std::ssize(xs);
  for (std::ptrdiff_t i = 0; i <= all; ++i) {  // the last time all inputs move
    if (i < all && !is_input(xs[static_cast<std::size_t>(i)])) continue;
    const GradErrors errors = errors_of(f, xs, check.seed, check.order == 2, i < all ? i : -1);
    const std::string of = i < all ? fmt::format("input {}", i) : "all inputs";
    for (const auto& [name, error] : {std::pair{"gradient", errors.first}, {"second gradient", errors.second}}) {
      if (error > check.tolerance)
        fail("check_grads", where,
             "the {} with respect to {} is not what differences give: relative error {:.2g}, {:.2g} is allowed", name,
             of, error, check.tolerance);
    }
  }
}

}  // namespace reel
