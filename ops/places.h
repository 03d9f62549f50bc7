// What ops that find elements along an axis have in common.
#pragma once
#include "ops/axes.h"

namespace reel {

/// The arguments of a kernel that writes `count` indices along an axis of x to out, for each column.
inline PlacesArgs places_args(const Tensor& x, int axis, bool largest, std::int64_t count, Tensor& out) {
  const Shape& s = x.shape();
  return {.dtype = x.dtype(),
          .largest = largest,
          .outer = s.product(0, axis),
          .n = s[axis],
          .inner = s.product(axis + 1, s.rank()),
          .count = count,
          .in = x.data(),
          .out = static_cast<std::int32_t*>(out.data())};
}

}  // namespace reel
