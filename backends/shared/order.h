// The order in which every backend sorts.
#pragma once
#include <cstdint>

#include "backends/shared/reduce_rules.h"

namespace reel {

/// Does element x at index i come before y at j? Equal elements stay in the order of their indices.
template <class T>
REEL_HD constexpr bool comes_before(bool descending, T x, std::int64_t i, T y, std::int64_t j) {
  const bool x_larger = MaxRule::beats(x, y), y_larger = MaxRule::beats(y, x);
  return x_larger == y_larger ? i < j : descending == x_larger;
}

}  // namespace reel
