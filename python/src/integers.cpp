// //, % and **. Those of integers go by way of f64, which has all of their values, and check elements before and after.
#include "python/src/integers.h"

#include <cmath>

#include "ops/constant.h"
#include "ops/told_as.h"
#include "python/src/checked.h"

namespace reel::python {

namespace {

bool is_integer(const Arg& x) {
  return x.is_number() ? x.number() == std::floor(x.number()) : x->dtype() == DType::i32;
}
bool is_single(const Arg& x) { return x.is_number() || x->dtype() == DType::f32; }

/// The quotient of which remainder(a, b) is the rest: floor(a / b) is one too high where a / b rounds up to an integer.
/// Not (a - rest) / b: a - rest may overflow, and is a zero of the wrong sign where both are equal. The rest is
/// infinite if b is and a is not, of the other sign: the quotient is -1, not the -0 of a / b.
Tensor floored_quotient(Arg a, Arg b) {
  const Tensor rest = reel::remainder(a, b), ratio = a / b;
  return where(is_finite(rest), round(ratio - rest / b), where(is_inf(rest), -1.0, floor(ratio)));
}
/// Of f32 in f64, which has all quotients below 2^53.
Tensor floored(Arg a, Arg b) {
  if (!is_single(a) || !is_single(b)) return floored_quotient(a, b);
  const auto wide = [&](const Arg& x) {
    if (!x.is_number()) return cast(x, DType::f64);
    return cast(full({}, x.number(), DType::f32, (a.is_number() ? b : a)->backend()), DType::f64);
  };
  const Tensor left = wide(a), right = wide(b);
  return cast(floored_quotient({left, a.where}, {right, b.where}), DType::f32);
}

constexpr const char *no_zero = "the divisor of integers is not 0", *fits = "the result must fit i32",
                     *in_f64 = ". Hint: cast a side to f64";
bool is_not_0(double v) { return v != 0; }
bool is_not_negative(double v) { return v >= 0; }

/// What the right operand and the result of an operator of integers must keep, and whether the result does for all
/// elements.
struct FloorDivide {
  static constexpr ElementRule right{"floor_divide", is_not_0, no_zero}, result{"floor_divide", fits_i32, fits, in_f64};
  static bool always_fits(const Arg& a, const Arg& b) { return !a.is_number() && b.is_number() && b.number() != -1; }
  Tensor operator()(Arg a, Arg b) const { return floored(a, b); }
};
struct Remainder {
  static constexpr ElementRule right{"remainder", is_not_0, no_zero}, result{"remainder", fits_i32, fits, in_f64};
  static bool always_fits(const Arg&, const Arg& b) { return !b.is_number() || fits_i32(b.number()); }
  Tensor operator()(Arg a, Arg b) const { return reel::remainder(a, b); }
};
struct Power {
  static constexpr ElementRule right{"pow", is_not_negative, "the exponent of integers is 0 or more",
                                     ". Hint: cast a side to f32"};
  static constexpr ElementRule result{"pow", fits_i32, fits, in_f64};
  static bool always_fits(const Arg&, const Arg&) { return false; }
  Tensor operator()(Arg a, Arg b) const { return reel::pow(a, b); }
};

template <class Op>
Tensor apply_to(Arg a, Arg b) {
  const bool numbers = a.is_number() && b.is_number();  // for the op to refuse
  if (numbers || !is_integer(a) || !is_integer(b))
    return told_as(Op::right.name, "", {&a, &b}, [&] { return Op{}(a, b); });
  Backend& device = (a.is_number() ? b : a)->backend();
  const auto wide = [&](const Arg& x) {
    return x.is_number() ? full({}, x.number(), DType::f64, device) : cast(x, DType::f64);
  };
  const Tensor left = wide(a), right = checked<Op::right>({wide(b), b.where});
  return told_as(Op::right.name, "", {&a, &b}, [&] {
    const Tensor y = round({Op{}({left, a.where}, {right, b.where}), a.where});
    return cast(Op::always_fits(a, b) ? y : checked<Op::result>({y, a.where}), DType::i32);
  });
}

}  // namespace

Tensor floor_divide(Arg a, Arg b) { return apply_to<FloorDivide>(a, b); }
Tensor modulo(Arg a, Arg b) { return apply_to<Remainder>(a, b); }
Tensor raise(Arg a, Arg b) { return apply_to<Power>(a, b); }

}  // namespace reel::python
