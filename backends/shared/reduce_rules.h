// Rules that every backend's reductions follow.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/core/dtype.h"

namespace reel {

/// What elements of T are summed as: i32 as unsigned, so that overflow wraps.
template <class T>
using summand = std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, T>;

/// The largest element; NaN is larger than any number.
struct MaxRule {
  template <class T>
  REEL_HD static constexpr T neutral() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  /// Does b replace a? A NaN replaces any number, and nothing replaces a NaN.
  template <class T>
  REEL_HD static constexpr bool beats(T b, T a) {
    return a < b || (b != b && a == a);
  }
};

/// The smallest element; NaN is smaller than any number.
struct MinRule {
  template <class T>
  REEL_HD static constexpr T neutral() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T>
  REEL_HD static constexpr bool beats(T b, T a) {
    return b < a || (b != b && a == a);
  }
};

}  // namespace reel
