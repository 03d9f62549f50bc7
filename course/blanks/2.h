// Assignment 2: broadcasting. Replace each BLANK.
#pragma once
#include <algorithm>

#include "course/array.h"
#include "course/check.h"

namespace arrays {

/// The shape to which both broadcast. Align the shapes at the last axis; an absent axis counts as 1. Two extents fit
/// when they are equal or one of them is 1: then the result has the other one. Throws std::invalid_argument when they
/// do not fit.
inline Shape broadcast(const Shape& a, const Shape& b) { BLANK; }

/// The stride in an array of this shape for each axis of `out`, to which it broadcasts: 0 where the array is repeated.
inline Strides strides(const Shape& shape, const Shape& out) { BLANK; }

/// a + b, with broadcasting.
inline Array add(const Array& a, const Array& b) { BLANK; }

/// The opposite of broadcasting: adds up all elements of x that came from the same element of an array of this shape.
inline Array sum_to(const Array& x, const Shape& shape) { BLANK; }

}  // namespace arrays
