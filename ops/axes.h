// Axes: those of a reduction, checked and prepared for the ops that reduce; and those that a stacked tensor lacks.
#pragma once
#include "ops/ops.h"

namespace reel {

struct ReducedAxes {
  Axes over, rest;      // the reduced axes in order, and the others
  Shape kept, dropped;  // the result's shape: with extents of 1 for the reduced axes, and without these
  std::int64_t count;   // the number of elements that become one
};

/// Empty `axes` mean all. Throws RuleError when an axis is out of range or occurs twice.
ReducedAxes reduced_axes(const Shape& shape, const Axes& axes);

/// x with the reduced axes merged into a last one: [..., count].
Tensor as_rows(const Arg& x, const ReducedAxes& r);

/// Reshapes a result, of either shape, to r.kept or r.dropped.
inline Tensor with_dims(const Tensor& y, const ReducedAxes& r, bool keep_dims, const Loc& where) {
  const Shape& shape = keep_dims ? r.kept : r.dropped;
  return y.shape() == shape ? y : reshape({y, where}, {shape.begin(), shape.end()});
}

/// Inserts axes of extent 1 after T into a stacked tensor [T, ...], so that each step broadcasts against values of rank
/// `rank`.
Tensor align(const Tensor& stacked, int rank);

/// Throws the RuleError for a dtype that an op does not support.
[[noreturn]] inline void refuse(DType dtype, const char* hint = "") {
  rule_error("{} elements are not supported{}", name_of(dtype), hint);
}

}  // namespace reel
