// Functions of one element: name, supported element types, and formula. T is a scalar or a SIMD batch of scalars. To
// add one, write a line here, add it to the list in names.h, and define its derivative in ops/unary.cpp.
#pragma once
#include "ops/functors/domain.h"
#include "ops/functors/math.h"
#include "ops/functors/names.h"
#include "ops/functors/powers.h"

namespace reel {

#define UNARY(F, text, numbers_, ...)                                             \
  struct F {                                                                      \
    static constexpr auto name = text;                                            \
    static constexpr unsigned domain = numbers_;                                  \
    template <class T>                                                            \
    REEL_HD auto operator()(T x) const {                                          \
      using namespace math; /* SIMD batches bring their own, found by argument */ \
      return __VA_ARGS__;                                                         \
    }                                                                             \
  };

UNARY(Neg, "neg", numbers, negated(x))
UNARY(Abs, "abs", numbers, magnitude(x))     // real for complex x
UNARY(Sign, "sign", numbers, math::sign(x))  // -1, 0 or 1; for complex x it is x / |x|, or 0
UNARY(Square, "square", numbers, times(x, x))
UNARY(Reciprocal, "reciprocal", fields, over(T(1), x))
UNARY(Sqrt, "sqrt", fields, sqrt(x))
UNARY(Rsqrt, "rsqrt", fields, over(T(1), sqrt(x)))
UNARY(Exp, "exp", fields, exponential(x))
UNARY(Expm1, "expm1", fields, exponential_less_one(x))  // e^x - 1
UNARY(Log, "log", fields, logarithm(x))
UNARY(Log1p, "log1p", fields, logarithm_of_one_plus(x))  // log(1 + x)
UNARY(Sin, "sin", fields, sin(x))
UNARY(Cos, "cos", fields, cos(x))
UNARY(Tan, "tan", fields, tan(x))
UNARY(Asin, "asin", fields, asin(x))
UNARY(Acos, "acos", fields, acos(x))
UNARY(Atan, "atan", fields, atan(x))
UNARY(Sinh, "sinh", fields, sinh(x))
UNARY(Cosh, "cosh", fields, cosh(x))
UNARY(Tanh, "tanh", fields, tanh(x))
UNARY(Erf, "erf", real_numbers, error_function(x))
UNARY(Softplus, "softplus", real_numbers, select(x > T(0), x, T(0)) + log1p(exponential(-abs(x))))  // log(1 + e^x)
UNARY(Relu, "relu", real_numbers | integer_numbers, select(x < T(0), T(0), x))                      // NaN stays NaN
UNARY(Gelu, "gelu", real_numbers, math::gelu(x))  // x Phi(x), Phi the normal distribution
UNARY(Softsign, "softsign", real_numbers, x / (T(1) + abs(x)))
UNARY(Floor, "floor", real_numbers, floor(x))
UNARY(Ceil, "ceil", real_numbers, ceil(x))
UNARY(Round, "round", real_numbers, nearbyint(x))  // halves to even
UNARY(Trunc, "trunc", real_numbers, trunc(x))
UNARY(Conj, "conj", complex_numbers, conj(x))
UNARY(Imag, "imag", complex_numbers, imag(x))
UNARY(Angle, "angle", complex_numbers, arg(x))
UNARY(IsNan, "is_nan", fields, isnan(x))
UNARY(IsInf, "is_inf", fields, isinf(x))
UNARY(IsFinite, "is_finite", fields, isfinite(x))
UNARY(Not, "logical_not", booleans, !x)

struct Sigmoid {  // 1 / (1 + e^-x) through e^-|x|, which neither overflows nor loses precision for negative x
  static constexpr auto name = "sigmoid";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::abs, math::select;
    const T e = math::exponential(-abs(x)), w = math::inverse_of_one_plus(e);
    return select(x < T(0), e * w, w);
  }
};
UNARY(Silu, "silu", real_numbers, max(number<T>(-1e30), x) * Sigmoid{}(x))  // -infinity times 0 would be NaN

// Functors with parameters, which are their members.

struct Affine {  // scale x + shift: arithmetic with a plain scalar
  double scale = 1, shift = 0;
  static constexpr auto name = "affine";
  static constexpr unsigned domain = numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      return {static_cast<R>(scale) * x.real() + static_cast<R>(shift), static_cast<R>(scale) * x.imag()};
    } else {
      using math::number, math::wrapping;
      return T(wrapping(number<T>(scale)) * wrapping(x) + wrapping(number<T>(shift)));
    }
  }
};
struct LeakyRelu {
  double slope = 0.01;
  static constexpr auto name = "leaky_relu";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::select;
    return select(x < T(0), math::number<T>(slope) * x, x);
  }
};
struct Elu {  // x for x > 0, alpha (e^x - 1) else
  double alpha = 1;
  static constexpr auto name = "elu";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::expm1, math::select;
    return select(x > T(0), x, math::number<T>(alpha) * expm1(x));
  }
};
struct Clamp {  // x clamped to low..high; NaN stays NaN
  double low, high;
  static constexpr auto name = "clamp";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::select;
    const T l = math::number<T>(low), h = math::number<T>(high);
    return select(x < l, l, select(x > h, h, x));
  }
};
struct ScaleGradient {  // x; only the gradient is multiplied by the factor
  double factor = 1;
  static constexpr auto name = "scale_gradient";
  static constexpr unsigned domain = fields;
  template <class T>
  REEL_HD T operator()(T x) const {
    return x;
  }
};
struct Power {  // x^exponent; integer exponents up to +-64 by multiplication, +-1/2 of real numbers by sqrt
  double exponent = 1;
  static constexpr auto name = "power";
  static constexpr unsigned domain = fields;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::power;
    if constexpr (!is_complex_type<T>) {
      if (exponent == 0.5) return math::root_power(x);
      if (exponent == -0.5) return T(1) / math::root_power(x);
    }
    const int whole = exponent >= -64 && exponent <= 64 ? static_cast<int>(exponent) : 0;
    return whole == exponent ? math::integer_power(x, whole) : power(x, math::number<T>(exponent));
  }
};

#define REEL_TYPE(F, f) F,
using UnaryFunctors =
    TypeList<REEL_UNARY_FUNCTIONS(REEL_TYPE) Conj, Imag, Angle, Affine, LeakyRelu, Elu, Clamp, Power, ScaleGradient>;
#undef REEL_TYPE
#undef UNARY

}  // namespace reel
