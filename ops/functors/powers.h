// Powers with integer exponents, by multiplication.
#pragma once
#include "ops/functors/math.h"

namespace reel::math {

/// x^n for n >= 0, by repeated squaring.
template <class T>
REEL_HD inline T whole_power(T x, int n) {
  if (n == 0) return T(1);
  for (; n % 2 == 0; n /= 2) x = times(x, x);
  T result = x;
  while ((n /= 2) > 0) {
    x = times(x, x);
    if (n % 2 == 1) result = times(result, x);
  }
  return result;
}

/// A real number with what it lost by rounding, so that products of many factors keep their last digits.
template <class T>
struct Compensated {
  T high, low;
  REEL_HD Compensated(T x, T lost = T(0)) : high(x), low(lost) {}
  REEL_HD friend Compensated operator*(const Compensated& a, const Compensated& b) {
    const T product = a.high * b.high, lost = multiply_add(a.high, b.high, -product);
    return {product, multiply_add(a.high, b.low, multiply_add(a.low, b.high, lost))};
  }
};

/// A complex number in double precision, also on a GPU.
struct WideComplex {
  using value_type = double;
  double re, im;
  REEL_HD WideComplex(double x, double y = 0) : re(x), im(y) {}
  REEL_HD double real() const { return re; }
  REEL_HD double imag() const { return im; }
};

}  // namespace reel::math

namespace reel {
template <>
inline constexpr bool is_complex_type<math::WideComplex> = true;
}  // namespace reel

namespace reel::math {

/// x^n. A negative power is one of 1 / x: x^-n may overflow where x^n does not.
template <class T>
REEL_HD inline T integer_power(T x, int n) {
  const int size = n < 0 ? -n : n;
  if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    const WideComplex z(x.real(), x.imag()), y = whole_power(n < 0 ? over(WideComplex(1), z) : z, size);
    return T(static_cast<R>(y.re), static_cast<R>(y.im));
  } else {
    if (n >= 0 && n <= 5) return whole_power(x, n);  // within 3 ulp
    const T inverse = T(1) / x;
    if (n == -1) return inverse;
    const T lost = inverse * multiply_add(-inverse, x, T(1));
    const Compensated<T> y = whole_power(n < 0 ? Compensated<T>(inverse, lost) : Compensated<T>(x), size);
    const T rest = abs(y.low);
    return select(rest > T(0) && rest < number<T>(INFINITY), y.high + y.low, y.high);  // of -0 and infinities: none
  }
}

/// x^(1/2) of real numbers. Other than sqrt, pow makes 0 of -0, and infinity of -infinity.
template <class T>
REEL_HD inline T root_power(T x) {
  const T infinite = number<T>(INFINITY);
  return select(x == T(0), T(0), select(x == -infinite, infinite, sqrt(x)));
}

}  // namespace reel::math
