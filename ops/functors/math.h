// Scalar mathematics under one set of names for every kind of number a functor meets: plain numbers here and on a GPU,
// and SIMD batches, which bring functions of their own that argument-dependent lookup finds.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define REEL_HD __host__ __device__
#else
#define REEL_HD
#endif

namespace reel::math {

using std::abs, std::conj, std::cos, std::exp, std::expm1, std::log, std::log1p, std::max, std::min, std::sin,
    std::sqrt, std::tanh;

/// a b + c with one rounding; SIMD batches have their own.
template <class T>
REEL_HD inline T multiply_add(T a, T b, T c) {
  return std::fma(a, b, c);
}

/// condition ? a : b; SIMD batches have their own.
template <class T>
REEL_HD inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}

/// The numbers a T is made of: T itself, or a batch's elements.
template <class T>
struct ScalarOf {
  using type = T;
};
template <class T>
requires requires { typename T::value_type; }
struct ScalarOf<T> {
  using type = typename T::value_type;
};
template <class T>
using scalar_of = typename ScalarOf<T>::type;

/// A parameter of a functor as a T: a number, or a batch filled with it.
template <class T>
REEL_HD inline T number(double x) {
  return T(static_cast<scalar_of<T>>(x));
}

/// x 2^k for whole k.
template <class T>
REEL_HD inline T scale_by_power(T x, T k) {
  if constexpr (std::is_floating_point_v<T>)
    return std::ldexp(x, static_cast<int>(k));
  else
    return ldexp(x, to_int(k));  // of the SIMD library
}

/// e^x for x <= 0, to one unit of the last place, where xsimd's exp is 1.5 off: what leaves sigmoid within two. Results
/// below the smallest normal number are 0. With x = k log 2 + r, e^x = 2^k (1 + r + r^2 q(r)), q from the Taylor
/// series.
template <class T>
REEL_HD inline T exp_nonpositive(T x) {
  using std::nearbyint;
  constexpr bool wide = sizeof(scalar_of<T>) == 8;
  const T lowest = number<T>(wide ? -708.0 : -87.0);
  const T inside = select(x < lowest, lowest, x);
  const T k = nearbyint(inside * number<T>(1.4426950408889634));
  const T high = number<T>(wide ? 0x1.62e42feep-1 : 0x1.62e4p-1),
          low = number<T>(wide ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cf79abcap-20);
  const T r = multiply_add(-k, low, multiply_add(-k, high, inside));
  constexpr int last = wide ? 13 : 7;
  double coefficient = 1;
  for (int i = 2; i <= last; ++i) coefficient /= i;
  T q = number<T>(coefficient);
  for (int i = last; i > 2; --i) q = multiply_add(q, r, number<T>(coefficient *= i));
  return select(x < lowest, T(0), scale_by_power(T(1) + multiply_add(r * r, q, r), k));
}

}  // namespace reel::math
