// Shared by the cells that use a scaled Cayley transform.
#pragma once
#include <cmath>

#include "cells/cell.h"

namespace reel {

inline constexpr double half_pi = 1.57079632679489662;

/// The diagonal of D: ones, followed by `negatives` entries of -1.
inline Tensor signs(std::int64_t n, std::int64_t negatives, const Init& init) {
  const Tensor plus = init.constant({n - negatives}, 1), minus = init.constant({negatives}, -1);
  return concat({plus, minus}, 0);
}

/// The number of -1 entries that a setting asks for; a negative setting means half of n.
inline std::int64_t negatives(const std::string& setting, std::int64_t given, std::int64_t n) {
  if (given > n) throw SettingError(setting, fmt::format("at most {} (the units) expected, got {}", n, given));
  return given < 0 ? n / 2 : given;
}

}  // namespace reel
