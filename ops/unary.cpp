// Functions of one element, and their calculus.
#include "ops/ops.h"

namespace reel {

DERIVATIVE(Neg) { return -1; }
DERIVATIVE(Affine) { return f.scale; }
DERIVATIVE(Abs) { return sign(x); }
DERIVATIVE(Sign) { return 0; }
DERIVATIVE(Square) { return 2 * x; }
DERIVATIVE(Reciprocal) { return -(y * y); }
DERIVATIVE(Sqrt) { return 0.5 / y; }
DERIVATIVE(Exp) { return y; }
DERIVATIVE(Log) { return 1 / x; }
DERIVATIVE(Sin) { return cos(x); }
DERIVATIVE(Cos) { return -sin(x); }
DERIVATIVE(Tanh) { return 1 - y * y; }
DERIVATIVE(Sigmoid) { return y * (1 - y); }
DERIVATIVE(Softplus) { return sigmoid(x); }
DERIVATIVE(Relu) { return sign(y); }
DERIVATIVE(LeakyRelu) { return where(x < 0, constant(f.slope, x), constant(1, x)); }
DERIVATIVE(Elu) { return where(x > 0, constant(1, x), y + f.alpha); }

Tensor neg(Arg x) { return apply(Unary<Neg>{}, {&x.tensor()}, x.where); }
Tensor affine(Arg x, double scale, double shift) {
  return apply(Unary<Affine>{{scale, shift}}, {&x.tensor()}, x.where);
}
Tensor abs(Arg x) { return apply(Unary<Abs>{}, {&x.tensor()}, x.where); }
Tensor sign(Arg x) { return apply(Unary<Sign>{}, {&x.tensor()}, x.where); }
Tensor square(Arg x) { return apply(Unary<Square>{}, {&x.tensor()}, x.where); }
Tensor reciprocal(Arg x) { return apply(Unary<Reciprocal>{}, {&x.tensor()}, x.where); }
Tensor sqrt(Arg x) { return apply(Unary<Sqrt>{}, {&x.tensor()}, x.where); }
Tensor exp(Arg x) { return apply(Unary<Exp>{}, {&x.tensor()}, x.where); }
Tensor log(Arg x) { return apply(Unary<Log>{}, {&x.tensor()}, x.where); }
Tensor sin(Arg x) { return apply(Unary<Sin>{}, {&x.tensor()}, x.where); }
Tensor cos(Arg x) { return apply(Unary<Cos>{}, {&x.tensor()}, x.where); }
Tensor tanh(Arg x) { return apply(Unary<Tanh>{}, {&x.tensor()}, x.where); }
Tensor sigmoid(Arg x) { return apply(Unary<Sigmoid>{}, {&x.tensor()}, x.where); }
Tensor softplus(Arg x) { return apply(Unary<Softplus>{}, {&x.tensor()}, x.where); }
Tensor relu(Arg x) { return apply(Unary<Relu>{}, {&x.tensor()}, x.where); }
Tensor leaky_relu(Arg x, double slope) { return apply(Unary<LeakyRelu>{{slope}}, {&x.tensor()}, x.where); }
Tensor elu(Arg x, double alpha) { return apply(Unary<Elu>{{alpha}}, {&x.tensor()}, x.where); }
Tensor conj(Arg x) { return is_complex(x->dtype()) ? apply(Unary<Conj>{}, {&x.tensor()}, x.where) : x.tensor(); }
Tensor operator-(Arg x) { return neg(x); }

Tensor chain(const Tensor& gradient, const Slope& derivative) {
  const Tensor& d = derivative.tensor;
  if (d.defined()) return is_complex(d.dtype()) ? gradient * conj(d) : gradient * d;
  return derivative.number == 1 ? gradient : affine(gradient, derivative.number, 0);
}

namespace {
[[maybe_unused]] const bool registered = register_ops<Unary>(UnaryFunctors{});
}  // namespace

}  // namespace reel
