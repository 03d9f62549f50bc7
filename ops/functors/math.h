// Scalar mathematics under one set of names for every kind of number a functor meets: plain numbers here and on a GPU, and
// SIMD batches, which bring functions of their own that argument-dependent lookup finds.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

#ifdef __CUDACC__
#define REEL_HD __host__ __device__
#else
#define REEL_HD
#endif

namespace reel::math {

using std::abs, std::conj, std::cos, std::exp, std::expm1, std::log, std::log1p, std::max, std::min, std::sin, std::sqrt,
    std::tanh;

/// condition ? a : b; SIMD batches have their own.
template <class T>
REEL_HD inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}

/// A parameter of a functor as a T: a number, or a batch filled with it.
template <class T>
REEL_HD inline T number(double x) {
  if constexpr (requires { typename T::value_type; }) return T(static_cast<typename T::value_type>(x));
  else return static_cast<T>(x);
}

}  // namespace reel::math
