// Functions of one element. T is a number or a SIMD batch of numbers; members are the function's parameters.
// A new one is written here, put into the list at the end, and gets its derivative in ops/unary.cpp.
#pragma once
#include "ops/functors/domain.h"
#include "ops/functors/math.h"

namespace reel {

struct Neg {
  static constexpr auto name = "neg";
  static constexpr unsigned domain = numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    return -x;
  }
};
struct Affine {  // scale x + shift: what arithmetic with a plain number comes to
  double scale = 1, shift = 0;
  static constexpr auto name = "affine";
  static constexpr unsigned domain = numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    return math::number<T>(scale) * x + math::number<T>(shift);
  }
};
struct Conj {
  static constexpr auto name = "conj";
  static constexpr unsigned domain = complex_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    return math::conj(x);
  }
};
struct Abs {
  static constexpr auto name = "abs";
  static constexpr unsigned domain = real_numbers | integers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::abs;
    return abs(x);
  }
};
struct Sign {  // 0 at 0
  static constexpr auto name = "sign";
  static constexpr unsigned domain = real_numbers | integers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::select;
    return select(x > T(0), T(1), select(x < T(0), T(-1), x));
  }
};
struct Square {
  static constexpr auto name = "square";
  static constexpr unsigned domain = numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    return x * x;
  }
};
struct Reciprocal {
  static constexpr auto name = "reciprocal";
  static constexpr unsigned domain = real_numbers | complex_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    return T(1) / x;
  }
};
struct Sqrt {
  static constexpr auto name = "sqrt";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::sqrt;
    return sqrt(x);
  }
};
struct Exp {
  static constexpr auto name = "exp";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::exp;
    return exp(x);
  }
};
struct Log {
  static constexpr auto name = "log";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::log;
    return log(x);
  }
};
struct Sin {
  static constexpr auto name = "sin";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::sin;
    return sin(x);
  }
};
struct Cos {
  static constexpr auto name = "cos";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::cos;
    return cos(x);
  }
};
struct Tanh {
  static constexpr auto name = "tanh";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::tanh;
    return tanh(x);
  }
};
struct Sigmoid {  // by e^-|x|, which neither overflows nor loses places on the negative side
  static constexpr auto name = "sigmoid";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::abs, math::multiply_add, math::select;
    const T e = math::exp_nonpositive(-abs(x)), sum = T(1) + e, lost = e - (sum - T(1));  // 1 + e = sum + lost, exactly
    const T r = T(1) / sum, w = r + r * (multiply_add(-r, sum, T(1)) - r * lost);         // 1 / (1 + e), to half a unit
    return select(x < T(0), e * w, w);
  }
};
struct Softplus {  // log(1 + e^x), without overflow
  static constexpr auto name = "softplus";
  static constexpr unsigned domain = real_numbers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::abs, math::exp, math::log1p, math::select;
    return select(x > T(0), x, T(0)) + log1p(exp(-abs(x)));
  }
};
struct Relu {  // max(x, 0); NaN stays NaN
  static constexpr auto name = "relu";
  static constexpr unsigned domain = real_numbers | integers;
  template <class T>
  REEL_HD T operator()(T x) const {
    using math::select;
    return select(x < T(0), T(0), x);
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

using UnaryFunctors = TypeList<Neg, Affine, Conj, Abs, Sign, Square, Reciprocal, Sqrt, Exp, Log, Sin, Cos, Tanh,
                               Sigmoid, Softplus, Relu, LeakyRelu, Elu>;

}  // namespace reel
