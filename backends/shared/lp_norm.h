// The L_p norm, scaled so that no power over- or underflows.
#pragma once
#include <cmath>

#include "ops/functors/powers.h"

namespace reel {

/// Elements are multiplied by `two`, then by `one`, which makes the largest 1. A power of two comes first, since 1 /
/// top itself may over- or underflow.
struct LpScale {
  double two, one;
};
/// `top`: the largest |x|, finite and not 0.
REEL_HD inline LpScale lp_scale(double top) {
  const int exponent = -::ilogb(top);
  const double two = ::ldexp(1.0, exponent < -1022 ? -1022 : exponent > 1022 ? 1022 : exponent);
  return {two, 1 / (top * two)};
}
/// p as an integer for powers by multiplication; 0: it is none, or too large.
REEL_HD inline int whole_exponent(double p) { return p <= 64 && static_cast<int>(p) == p ? static_cast<int>(p) : 0; }

}  // namespace reel
