// Sums of rows that a time loop adds up in place.
#pragma once
#include "engine/core/tensor.h"

namespace reel {

/// While the step of a loop is traced: should a sum of x to this shape start with the sum of its rows?
bool loop_adds_rows(const Tensor& x, const Shape& shape);
/// The sum over axis 0 as one row, added row after row: [B, ...] -> [1, ...].
Tensor sum_rows(const Tensor& x);
/// The same of x y, both of one shape.
Tensor sum_products(const Tensor& x, const Tensor& y);

}  // namespace reel
