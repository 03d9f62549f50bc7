// The axes that a reduction goes over, as the ops that reduce need them.
#pragma once
#include "ops/ops.h"

namespace reel {

struct ReducedAxes {
  Axes over, rest;      // the axes reduced, in order, and the others
  Shape kept, dropped;  // the result's shape: with extents of 1 for them, and without them
  std::int64_t count;   // how many elements become one
};

/// Throws RuleError when an axis is out of range or named twice; no axes stand for all.
ReducedAxes reduced_axes(const Shape& shape, const Axes& axes);

/// x with the axes reduced last, as one: [..., count].
Tensor as_rows(const Arg& x, const ReducedAxes& r);

/// A result of either shape in the shape that is wanted.
inline Tensor with_dims(const Tensor& y, const ReducedAxes& r, bool keep_dims, const Where& where) {
  const Shape& shape = keep_dims ? r.kept : r.dropped;
  return y.shape() == shape ? y : reshape({y, where}, {shape.begin(), shape.end()});
}

/// The name of a dtype that an op does not take, as the rule it breaks.
[[noreturn]] inline void refuse(DType dtype, const char* hint = "") {
  broken("{} elements are not supported{}", name_of(dtype), hint);
}

}  // namespace reel
