// Functions of two elements, with broadcasting, and their derivatives.
#include <cmath>

#include "ops/constant.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// x / r; 0 where r is 0, and so are its derivatives.
Tensor ratio(const Tensor& x, const Tensor& r) {
  const Tensor zero = equal(r, 0);
  return where(zero, constant(0, r), x / where(zero, 1, r));
}

/// x / r^2 where the square may over- or underflow; 0 where r is 0, and so are its derivatives.
Tensor over_square(const Tensor& x, const Tensor& r) { return ratio(ratio(x, r), r); }

}  // namespace

DERIVATIVE_A(Add) { return 1; }
DERIVATIVE_B(Add) { return 1; }
DERIVATIVE_A(Sub) { return 1; }
DERIVATIVE_B(Sub) { return -1; }
DERIVATIVE_A(Mul) { return b; }
DERIVATIVE_B(Mul) { return a; }
DERIVATIVE_A(Div) { return 1 / b; }
DERIVATIVE_B(Div) { return -y / b; }
DERIVATIVE_A(Pow) {  // 0 where b is and a is 0 or so small that 1 / a overflows: there b a^(b - 1) is 0 times infinity
  const Tensor both = logical_and(equal(b, 0), is_inf(1 / a));
  return where(both, constant(0, y), b * pow(where(both, 1, a), b - 1));
}
DERIVATIVE_B(Pow) {  // 0 at 0^b, where y log(a) is 0 times infinity
  const Tensor zero = equal(a, 0);
  return where(zero, constant(0, y), y * log(where(zero, 1, a)));
}
DERIVATIVE_A(Maximum) { return share(a > b, a, b); }  // each gets half where they are equal
DERIVATIVE_B(Maximum) { return share(a < b, a, b); }
DERIVATIVE_A(Minimum) { return share(a < b, a, b); }
DERIVATIVE_B(Minimum) { return share(a > b, a, b); }
DERIVATIVE_A(Remainder) { return 1; }
DERIVATIVE_B(Remainder) {  // the quotient of which y is the remainder; floor(a / b) rounds up to the next one at times
  return -where(equal(y, b), -1, round((a - y) / b));
}
DERIVATIVE_A(Atan2) { return over_square(b, hypot(a, b)); }
DERIVATIVE_B(Atan2) { return -over_square(a, hypot(a, b)); }
DERIVATIVE_A(Hypot) { return ratio(a, y); }
DERIVATIVE_B(Hypot) { return ratio(b, y); }
DERIVATIVE_A(MakeComplex) { return 1; }
DERIVATIVE_B(MakeComplex) { return full({}, {0, 1}, y.dtype(), y.backend()); }
DERIVATIVE_A(ModRelu) { return cast(not_equal(y, 0), y.dtype()); }  // 0 where the unit is off, and at a = 0
DERIVATIVE_B(ModRelu) { return sign(y); }
DERIVATIVE_A(ReluBackward) { return abs(sign(b)); }
DERIVATIVE_B(ReluBackward) { return 0; }
DERIVATIVE_A(TanhBackward) { return 1 - b * b; }
DERIVATIVE_B(TanhBackward) { return -2 * (a * b); }
DERIVATIVE_A(SigmoidBackward) { return b * (1 - b); }
DERIVATIVE_B(SigmoidBackward) { return a * (1 - 2 * b); }

FUSED_BACKWARD(ModRelu, relu_backward)

namespace {

bool is_tensor(const Arg& x) { return !x.is_number() && !x.is_complex_number(); }

template <class F>
Tensor binary(const Arg& a, const Arg& b) {
  if (is_tensor(a) && is_tensor(b) && a->dtype() == b->dtype()) return apply(Binary<F>{}, a, b);
  const Tensor left = operand(F::name, a, b), right = operand(F::name, b, a);
  return apply(Binary<F>{}, {&left, &right}, a.where);
}

[[maybe_unused]] const bool registered = register_ops<Binary>(BinaryFunctors{});

}  // namespace

double whole(const char* op, const Arg& x, const Tensor& other) {
  if (other.dtype() != DType::i32) return x.number();
  if (x.number() != std::floor(x.number()))
    fail(op, x.where, "{} is not an integer, and the tensor is {}. Hint: cast it to f32", x.number(),
         other.spec().str());
  if (!fits_i32(x.number()))
    fail(op, x.where, "{} does not fit i32, and the tensor is {}. Hint: cast it to f64", x.number(),
         other.spec().str());
  return x.number();
}

Tensor operand(const char* op, const Arg& x, const Arg& other) {
  if ((x.is_number() || x.is_complex_number()) && (other.is_number() || other.is_complex_number()))
    fail(op, x.where, "at least one operand must be a tensor. Hint: full_like(x, {})", x.number());
  if (x.is_number()) {
    if (other->dtype() == DType::boolean && x.number() != 0 && x.number() != 1)
      fail(op, x.where, "{} is neither True nor False, and the tensor is {}. Hint: cast it to f32", x.number(),
           other->spec().str());
    return constant(whole(op, x, other.tensor()), other.tensor());
  }
  if (x.is_complex_number()) {
    const DType d = other->dtype();
    return full({}, x.complex_number(), is_differentiable(d) ? complex_of(d) : DType::c64, other->backend());
  }
  const DType wide = complex_of(x->dtype());
  return other.is_complex_number() || (!other.is_number() && other->dtype() == wide) ? cast(x, wide) : x.tensor();
}

Tensor operator+(Arg a, Arg b) {
  if (a.is_number() && is_tensor(b)) return affine({b.tensor(), a.where}, 1, whole(Add::name, a, b.tensor()));
  return b.is_number() && is_tensor(a) ? affine(a, 1, whole(Add::name, b, a.tensor())) : binary<Add>(a, b);
}
Tensor operator-(Arg a, Arg b) {
  if (a.is_number() && is_tensor(b)) return affine({b.tensor(), a.where}, -1, whole(Sub::name, a, b.tensor()));
  return b.is_number() && is_tensor(a) ? affine(a, 1, -whole(Sub::name, b, a.tensor())) : binary<Sub>(a, b);
}
Tensor operator*(Arg a, Arg b) {
  if (a.is_number() && is_tensor(b)) return affine({b.tensor(), a.where}, whole(Mul::name, a, b.tensor()), no_shift);
  return b.is_number() && is_tensor(a) ? affine(a, whole(Mul::name, b, a.tensor()), no_shift) : binary<Mul>(a, b);
}
Tensor operator/(Arg a, Arg b) { return binary<Div>(a, b); }
Tensor pow(Arg a, Arg b) { return b.is_number() && is_tensor(a) ? power(a, b.number()) : binary<Pow>(a, b); }
Tensor remainder(Arg a, Arg b) { return binary<Remainder>(a, b); }
Tensor atan2(Arg a, Arg b) { return binary<Atan2>(a, b); }
Tensor hypot(Arg a, Arg b) { return binary<Hypot>(a, b); }
Tensor complex(Arg re, Arg im) { return binary<MakeComplex>(re, im); }
Tensor polar(Arg size, Arg angle) {
  need_tensors("polar", {&angle});
  return told_as("polar", "mul", {&size, &angle}, [&] {
    return complex({size * cos(angle), size.where}, size * sin(angle));
  });
}
Tensor relu_backward(Arg a, Arg b) { return binary<ReluBackward>(a, b); }
Tensor tanh_backward(Arg a, Arg b) { return binary<TanhBackward>(a, b); }
Tensor sigmoid_backward(Arg a, Arg b) { return binary<SigmoidBackward>(a, b); }
Tensor maximum(Arg a, Arg b) { return binary<Maximum>(a, b); }
Tensor minimum(Arg a, Arg b) { return binary<Minimum>(a, b); }
Tensor equal(Arg a, Arg b) { return binary<Equal>(a, b); }
Tensor not_equal(Arg a, Arg b) { return binary<NotEqual>(a, b); }
Tensor operator<(Arg a, Arg b) { return binary<Less>(a, b); }
Tensor operator<=(Arg a, Arg b) { return binary<LessEqual>(a, b); }
Tensor operator>(Arg a, Arg b) { return binary<Less>(b, a); }
Tensor operator>=(Arg a, Arg b) { return binary<LessEqual>(b, a); }
Tensor logical_and(Arg a, Arg b) { return binary<And>(a, b); }
Tensor logical_or(Arg a, Arg b) { return binary<Or>(a, b); }
Tensor logical_xor(Arg a, Arg b) { return binary<Xor>(a, b); }

Tensor modrelu(Arg z, Arg b, const ModReluOptions& options) {
  need_tensors("modrelu", {&z, &b});
  const auto [inside, shift, divide] = options;
  if (inside < 0 || shift < 0 || divide < 0)
    fail("modrelu", z.where, "its small numbers are 0 or more, got inside {}, shift {}, divide {}", inside, shift,
         divide);
  if (!is_differentiable(z->dtype()) || b->dtype() != real_of(z->dtype()))
    fail("modrelu", z.where, "z is real or complex and b real of its precision; got {} and {}", z->spec().str(),
         b->spec().str());
  const bool exact = inside == 0 && divide == 0;
  if (exact && !is_complex(z->dtype())) return apply(Binary<ModRelu>{{shift}}, z, b);
  const Tensor size = inside > 0 ? sqrt(square(real(z)) + square(imag(z)) + inside) : abs(z);
  const Tensor left = relu(operator+({size, z.where}, b) + shift);
  return exact ? sign(z) * left : z * (left / (size + divide));
}

namespace primitive {
Tensor add(const Tensor& a, const Tensor& b) { return apply(Binary<Add>{}, {&a, &b}, Loc::current()); }
Tensor scale(const Tensor& x, double factor) { return x * factor; }
}  // namespace primitive

}  // namespace reel
