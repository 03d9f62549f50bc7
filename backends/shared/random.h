// From a uniform random number to a distribution, the same for every backend.
#pragma once
#include <cmath>

#include "ops/functors/philox.h"

namespace reel {

/// Maps u in [0, 1) to [low, high): rounding does not reach the excluded bound. A multiply-add, so that the bits do not
/// depend on whether a compiler makes one.
template <class T>
REEL_HD T uniform_between(double u, double low, double high) {
  const T x = static_cast<T>(std::fma(high - low, u, low)), first = static_cast<T>(low), end = static_cast<T>(high);
  if constexpr (std::is_same_v<T, float>)
    return x >= end && first < end ? ::nextafterf(end, first) : x;
  else
    return x >= end && first < end ? ::nextafter(end, first) : x;
}

/// Maps u in [0, 1 - 2^-53] to an integer in [low, high); the bounds are within those of i32.
REEL_HD inline std::int32_t integer_between(double u, double low, double high) {
  return static_cast<std::int32_t>(low + std::floor(u * (high - low)));
}

}  // namespace reel
