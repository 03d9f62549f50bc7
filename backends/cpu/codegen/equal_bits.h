// Numbers at random on which compiled functions are compared with the interpreter, and what counts as equal.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/core/dtype.h"
#include "ops/functors/philox.h"

namespace reel::cpu {

/// Of very different sizes, some of them zeros of both signs.
template <class T>
T number_at_random(Stream& random, std::int64_t i) {
  const auto x = static_cast<T>(std::ldexp(2 * random.uniform() - 1, static_cast<int>(random.below(12)) - 8));
  if (i % 17 == 0) return static_cast<T>(i % 2 ? -0.0 : 0.0);
  return i % 29 == 0 ? x * static_cast<T>(1e20) : x;
}

/// The same bits; any NaN equals any other.
inline bool equal_values(DType dtype, const std::byte* a, const std::byte* b, std::int64_t bytes) {
  if (dtype == DType::boolean || dtype == DType::i32) return std::equal(a, a + bytes, b);
  return dispatch_floating(real_of(dtype), [&]<class T>(std::type_identity<T>) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t at = 0; at < bytes; at += size) {
      if (std::equal(a + at, a + at + size, b + at)) continue;
      T x, y;
      std::memcpy(&x, a + at, sizeof x);
      std::memcpy(&y, b + at, sizeof y);
      if (!std::isnan(x) || !std::isnan(y)) return false;
    }
    return true;
  });
}

}  // namespace reel::cpu
