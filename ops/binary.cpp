// Functions of two elements, with broadcasting, and their calculus.
#include <cmath>

#include "ops/ops.h"

namespace reel {

DERIVATIVE_A(Add) { return 1; }
DERIVATIVE_B(Add) { return 1; }
DERIVATIVE_A(Sub) { return 1; }
DERIVATIVE_B(Sub) { return -1; }
DERIVATIVE_A(Mul) { return b; }
DERIVATIVE_B(Mul) { return a; }
DERIVATIVE_A(Div) { return 1 / b; }
DERIVATIVE_B(Div) { return -y / b; }
DERIVATIVE_A(Maximum) { return share(a > b, a, b); }  // half to each where they are equal
DERIVATIVE_B(Maximum) { return share(a < b, a, b); }
DERIVATIVE_A(Minimum) { return share(a < b, a, b); }
DERIVATIVE_B(Minimum) { return share(a > b, a, b); }

namespace {

/// A number that goes with a tensor: whole when the tensor's elements are.
double whole(const Arg& x, const Arg& other) {
  if (other->dtype() == DType::i32 && x.number() != std::floor(x.number()))
    fail("arithmetic", x.where, "{} is not a whole number, and the tensor is {}. Hint: cast it to f32", x.number(),
         other->spec().str());
  return x.number();
}

/// The operand as a tensor of the dtype of the other, when it is a number; complex when the other is.
Tensor operand(const Arg& x, const Arg& other) {
  if (x.is_number()) return constant(whole(x, other), other.tensor());
  if (!other.is_number() && is_complex(other->dtype()) && is_floating(x->dtype()))
    return cast(x, complex_of(x->dtype()));
  return x.tensor();
}

template <class F>
Tensor binary(const Arg& a, const Arg& b) {
  if (!a.is_number() && !b.is_number() && a->dtype() == b->dtype())
    return apply(Binary<F>{}, {&a.tensor(), &b.tensor()}, a.where);
  const Tensor left = operand(a, b), right = operand(b, a);
  return apply(Binary<F>{}, {&left, &right}, a.where);
}

[[maybe_unused]] const bool registered = register_ops<Binary>(BinaryFunctors{});

}  // namespace

Tensor operator+(Arg a, Arg b) {
  if (a.is_number() && !b.is_number()) return affine({b.tensor(), a.where}, 1, whole(a, b));
  return b.is_number() ? affine(a, 1, whole(b, a)) : binary<Add>(a, b);
}
Tensor operator-(Arg a, Arg b) {
  if (a.is_number() && !b.is_number()) return affine({b.tensor(), a.where}, -1, whole(a, b));
  return b.is_number() ? affine(a, 1, -whole(b, a)) : binary<Sub>(a, b);
}
Tensor operator*(Arg a, Arg b) {
  if (a.is_number() && !b.is_number()) return affine({b.tensor(), a.where}, whole(a, b), 0);
  return b.is_number() ? affine(a, whole(b, a), 0) : binary<Mul>(a, b);
}
Tensor operator/(Arg a, Arg b) { return binary<Div>(a, b); }
Tensor maximum(Arg a, Arg b) { return binary<Maximum>(a, b); }
Tensor minimum(Arg a, Arg b) { return binary<Minimum>(a, b); }
Tensor equal(Arg a, Arg b) { return binary<Equal>(a, b); }
Tensor not_equal(Arg a, Arg b) { return binary<NotEqual>(a, b); }
Tensor operator<(Arg a, Arg b) { return binary<Less>(a, b); }
Tensor operator<=(Arg a, Arg b) { return binary<LessEqual>(a, b); }
Tensor operator>(Arg a, Arg b) { return binary<Less>(b, a); }
Tensor operator>=(Arg a, Arg b) { return binary<LessEqual>(b, a); }

namespace primitive {
Tensor add(const Tensor& a, const Tensor& b) { return apply(Binary<Add>{}, {&a, &b}, Where::current()); }
Tensor scale(const Tensor& x, double factor) { return x * factor; }
}  // namespace primitive

}  // namespace reel
