// The order of elements that every backend's max, min and argmax follow.
#pragma once
#include <limits>

#include "engine/core/dtype.h"

namespace reel {

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
