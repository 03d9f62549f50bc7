// Functions of one element, and their derivatives.
#include <cmath>
#include <numbers>

#include "ops/constant.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace reel {

namespace {
/// 1 - x^2, of real numbers without the digits that it loses near 1, as the derivative of the product does near 0.
Tensor one_less_square(const Tensor& x) {
  const Tensor small = 1 - x * x;
  return is_complex(x.dtype()) ? small : where(abs(x) < 0.5, small, (1 - x) * (1 + x));
}
}  // namespace

DERIVATIVE(Neg) { return -1; }
DERIVATIVE(Affine) { return f.scale; }
DERIVATIVE(Abs) { return conj(sign(x)); }
DERIVATIVE(Square) { return 2 * x; }
DERIVATIVE(Reciprocal) { return -(y * y); }
DERIVATIVE(Sqrt) { return 0.5 / y; }
DERIVATIVE(Rsqrt) { return -0.5 * (y * y * y); }
DERIVATIVE(Exp) { return y; }
DERIVATIVE(Expm1) { return exp(x); }  // not y + 1, in which a small e^x is lost
DERIVATIVE(Log) { return 1 / x; }
DERIVATIVE(Log1p) { return 1 / (1 + x); }
DERIVATIVE(Sin) { return cos(x); }
DERIVATIVE(Cos) { return -sin(x); }
DERIVATIVE(Tan) { return 1 + y * y; }
DERIVATIVE(Asin) { return rsqrt(one_less_square(x)); }
DERIVATIVE(Acos) { return -rsqrt(one_less_square(x)); }
DERIVATIVE(Atan) { return 1 / (1 + x * x); }
DERIVATIVE(Sinh) { return cosh(x); }
DERIVATIVE(Cosh) { return sinh(x); }
DERIVATIVE(Tanh) { return 1 - y * y; }
DERIVATIVE(Sigmoid) { return y * (1 - y); }
DERIVATIVE(Erf) { return 2 * std::numbers::inv_sqrtpi * exp(-(x * x)); }
DERIVATIVE(Softplus) { return sigmoid(x); }
DERIVATIVE(Relu) { return cast(not_equal(y, 0), y.dtype()); }
DERIVATIVE(LeakyRelu) { return where(x < 0, constant(f.slope, x), constant(1, x)); }
DERIVATIVE(Elu) {  // not y + alpha, in which e^x is lost beside 1
  const Tensor positive = x > 0;
  return where(positive, constant(1, x), f.alpha * exp(where(positive, constant(0, x), x)));
}
DERIVATIVE(Gelu) {  // Phi(x) + x phi(x), where 1 + erf would cancel in Phi for small x
  const double root = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Tensor small = x < -1;
  const Tensor normal = where(small, y / where(small, x, 1), 0.5 + 0.5 * erf(x / std::numbers::sqrt2));
  return normal + root * (x * exp(-0.5 * (x * x)));
}
DERIVATIVE(Silu) {  // not s (1 + x - y), in which 1 is lost beside a large x
  const Tensor s = sigmoid(x);
  return s + y * (1 - s);
}
DERIVATIVE(Clamp) {  // from x alone: where x is computed again, it may differ from what y was made of in the last bits
  return cast(logical_and(x >= f.low, x <= f.high), x.dtype());
}
DERIVATIVE(Power) { return f.exponent == 0 ? Derivative(0) : Derivative(f.exponent * pow(x, f.exponent - 1)); }
DERIVATIVE(ScaleGradient) { return f.factor; }                   // deliberately not the derivative of the value
DERIVATIVE(Softsign) { return square(reciprocal(1 + abs(x))); }  // not (1 - |y|)^2, which cancels far out
DERIVATIVE(Floor) { return 0; }
DERIVATIVE(Ceil) { return 0; }
DERIVATIVE(Round) { return 0; }
DERIVATIVE(Trunc) { return 0; }
DERIVATIVE(Imag) { return full({}, {0, -1}, x.dtype(), x.backend()); }
DERIVATIVE(Angle) {  // -i / x, 0 at 0
  const Tensor zero = equal(x, 0);
  return where(zero, constant(0, x), full({}, {0, -1}, x.dtype(), x.backend()) / where(zero, 1, x));
}

FUSED_BACKWARD(Tanh, tanh_backward)
FUSED_BACKWARD(Sigmoid, sigmoid_backward)
FUSED_BACKWARD(Relu, relu_backward)

std::vector<FusedForm>& fused_forms() {
  static std::vector<FusedForm> forms;
  return forms;
}

#define REEL_DEFINE(F, f) \
  Tensor f(Arg x) { return apply(Unary<F>{}, x); }
REEL_UNARY_FUNCTIONS(REEL_DEFINE)
#undef REEL_DEFINE

Tensor operator-(Arg x) { return neg(x); }
Tensor affine(Arg x, double scale, double shift) {
  for (const double number : {scale, shift}) whole("affine", {number, x.where}, x.tensor("affine"));
  return apply(Unary<Affine>{{scale, shift}}, x);
}
Tensor leaky_relu(Arg x, double slope) { return apply(Unary<LeakyRelu>{{slope}}, x); }
Tensor elu(Arg x, double alpha) { return apply(Unary<Elu>{{alpha}}, x); }
Tensor clamp(Arg x, double low, double high) {
  if (!(low <= high)) fail("clamp", x.where, "low must not be above high, got {} and {}", low, high);
  return apply(Unary<Clamp>{{low, high}}, x);
}
Tensor power(Arg x, double exponent) {
  if (exponent == 2 && is_floating(x.tensor("power").dtype())) return square(x);  // the same number, in fewer steps
  return apply(Unary<Power>{{exponent}}, x);
}
Tensor scale_gradient(Arg x, double factor) { return apply(Unary<ScaleGradient>{{factor}}, x); }
Tensor stop_gradient(Arg x) {
  return is_differentiable(x.tensor("stop_gradient").dtype()) ? scale_gradient(x, 0) : x.tensor();
}
Tensor conj(Arg x) { return is_complex(x.tensor("conj").dtype()) ? apply(Unary<Conj>{}, x) : x.tensor(); }
Tensor imag(Arg x) { return is_complex(x.tensor("imag").dtype()) ? apply(Unary<Imag>{}, x) : zeros_like(x); }
Tensor angle(Arg x) {
  need_tensors("angle", {&x});
  if (is_complex(x->dtype())) return apply(Unary<Angle>{}, x);
  if (!is_floating(x->dtype())) return angle({cast(x, DType::f32), x.where});
  const Tensor positive = where({is_nan(x), x.where}, constant(NAN, x), constant(0, x));
  return where({operator<(x, 0.0), x.where}, constant(std::numbers::pi, x), positive);
}

Tensor chain(const Tensor& gradient, const Derivative& derivative) {
  const Tensor& d = derivative.tensor;
  if (d.defined()) return is_complex(d.dtype()) ? gradient * conj(d) : gradient * d;
  if (derivative.number == 0) return {};
  return derivative.number == 1 ? gradient : affine(gradient, derivative.number, no_shift);
}

Tensor chain_conj(const Tensor& dy) { return conj(dy); }

// The component of dy orthogonal to x, divided by |x|: moving x along itself does not change its sign.
Tensor chain_sign(const Tensor& dy, const Tensor& x, const Tensor& y) {
  if (!is_complex(x.dtype())) return {};
  const Tensor size = abs(x), zero = equal(size, 0);
  return where(zero, constant(0, x), (dy - y * real(conj(y) * dy)) / where(zero, 1, size));
}

namespace primitive {
Tensor stop_gradient(const Tensor& x) { return reel::stop_gradient(x); }
}  // namespace primitive

namespace {
[[maybe_unused]] const bool registered = register_ops<Unary>(UnaryFunctors{});
}  // namespace

}  // namespace reel
