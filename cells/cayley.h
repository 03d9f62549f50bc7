// What the cells with a scaled Cayley transform share.
#pragma once
#include <cmath>

#include "cells/cell.h"

namespace reel {

inline constexpr double half_pi = 1.57079632679489662;

/// The diagonal D: ones, then `negatives` entries -1.
inline Tensor signs(std::int64_t n, std::int64_t negatives, const Init& init) {
  const Tensor plus = init.constant({n - negatives}, 1), minus = init.constant({negatives}, -1);
  return concat({plus, minus}, 0);
}

/// A setting for their number: -1 stands for half of n.
inline std::int64_t negatives(const std::string& option, std::int64_t given, std::int64_t n) {
  if (given > n) throw OptionError(option, fmt::format("at most {}, the units, are wanted, got {}", n, given));
  return given < 0 ? n / 2 : given;
}

}  // namespace reel
