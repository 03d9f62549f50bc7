// Functions of two elements: name, supported element types, and formula. T is a scalar or a SIMD batch of scalars. To
// add one, write a line here, add it to the list below, and define its derivatives in ops/binary.cpp.
#pragma once
#include "ops/functors/domain.h"
#include "ops/functors/math.h"

namespace reel {

#define BINARY(F, text, numbers_, ...)                                            \
  struct F {                                                                      \
    static constexpr auto name = text;                                            \
    static constexpr unsigned domain = numbers_;                                  \
    template <class T>                                                            \
    REEL_HD auto operator()(T a, T b) const {                                     \
      using namespace math; /* SIMD batches bring their own, found by argument */ \
      return __VA_ARGS__;                                                         \
    }                                                                             \
  };

BINARY(Add, "add", numbers, T(wrapping(a) + wrapping(b)))
BINARY(Sub, "sub", numbers, T(wrapping(a) - wrapping(b)))
BINARY(Mul, "mul", numbers, times(a, b))
BINARY(Div, "div", fields, over(a, b))
BINARY(Pow, "pow", fields, power(a, b))
BINARY(Maximum, "maximum", real_numbers | integer_numbers, larger(a, b))  // NaN if one of them is
BINARY(Minimum, "minimum", real_numbers | integer_numbers, smaller(a, b))
BINARY(Remainder, "remainder", real_numbers, math::remainder(a, b))  // a - b floor(a / b), exactly
BINARY(Atan2, "atan2", real_numbers, angle_of(a, b))                 // the angle of (b, a)
BINARY(Hypot, "hypot", real_numbers, hypotenuse(a, b))
// Gradients of common activations, fused into one pass: a is the gradient of the result, b is the result.
BINARY(ReluBackward, "relu_backward", real_numbers, select(b == T(0), T(0), a))
BINARY(TanhBackward, "tanh_backward", real_numbers, a* multiply_add(-b, b, T(1)))
BINARY(SigmoidBackward, "sigmoid_backward", real_numbers, a*(b*(T(1) - b)))
BINARY(Equal, "equal", numbers | booleans, a == b)
BINARY(NotEqual, "not_equal", numbers | booleans, !(a == b))  // of SIMD batches != is wrong for NaN
BINARY(Less, "less", real_numbers | integer_numbers, a < b)
BINARY(LessEqual, "less_equal", real_numbers | integer_numbers, a <= b)
BINARY(And, "logical_and", booleans, a&& b)
BINARY(Or, "logical_or", booleans, a || b)
BINARY(Xor, "logical_xor", booleans, a != b)

struct MakeComplex {  // a + i b
  static constexpr auto name = "complex";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD std::complex<T> operator()(T a, T b) const {
    return {a, b};
  }
};
struct ModRelu {  // sign(a) max(|a| + shift + b, 0)
  double shift = 0;
  static constexpr auto name = "modrelu";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    using math::abs, math::select;
    const T size = abs(a) + math::number<T>(shift) + b;
    return math::sign(a) * select(size < T(0), T(0), size);
  }
};

using BinaryFunctors =
    TypeList<Add, Sub, Mul, Div, Pow, Maximum, Minimum, Remainder, Atan2, Hypot, ReluBackward, TanhBackward,
             SigmoidBackward, Equal, NotEqual, Less, LessEqual, And, Or, Xor, MakeComplex, ModRelu>;
#undef BINARY

}  // namespace reel
