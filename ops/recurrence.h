// The linear recurrence that running products and sums are made of.
#pragma once
#include "ops/arg.h"

namespace reel {

/// y[j] = factors[j] y[j-1] + terms[j] along an axis, y[-1] being 0; reverse: y[j] = factors[j] y[j+1] + terms[j], y[n]
/// being 0. Both have one shape and dtype.
Tensor recurrence(Arg factors, Arg terms, std::int64_t axis, bool reverse = false);

}  // namespace reel
