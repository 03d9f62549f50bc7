// Python's //, % and ** of floating tensors, and of integers as NumPy has them, but for values that i32 does not hold.
#pragma once
#include "ops/arg.h"

namespace reel::python {

/// a // b. Throws Error if an integer is divided by 0; a step of scan checks its elements as it runs.
Tensor floor_divide(Arg a, Arg b);
/// a % b; the same.
Tensor modulo(Arg a, Arg b);
/// a ** b. Throws Error if an integer has a negative exponent, or a power that does not fit i32.
Tensor raise(Arg a, Arg b);

}  // namespace reel::python
