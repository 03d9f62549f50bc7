// The few ops that the engine itself calls, to add gradients and to index time. They are only declared here and defined
// in ops/.
#pragma once
#include "engine/core/tensor.h"

namespace reel::primitive {

/// A tensor of this spec whose elements are all the same.
Tensor full(const Spec& spec, double value);
/// a + b, same spec.
Tensor add(const Tensor& a, const Tensor& b);
/// x times a scalar.
Tensor scale(const Tensor& x, double factor);
/// Sums x over the axes along which `shape` was broadcast to x's shape.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// The sum over the leading axis: [T, ...] -> [...].
Tensor sum_leading(const Tensor& x);
/// x as a constant for the tape.
Tensor stop_gradient(const Tensor& x);
/// The real part of a complex tensor.
Tensor real_part(const Tensor& x);
/// x[t]: [T, ...] -> [...]; shares storage.
Tensor at(const Tensor& x, std::int64_t t);
/// x[first..last): [T, ...] -> [last - first, ...]; shares storage.
Tensor slice_leading(const Tensor& x, std::int64_t first, std::int64_t last);
/// Tensors of one spec stacked along a new leading axis.
Tensor stack(const Tensors& rows);
/// Tensors concatenated along the leading axis.
Tensor concat_leading(const Tensors& parts);
/// The same elements in another shape; shares storage.
Tensor reshape(const Tensor& x, const Shape& shape);

/// The table with zeros for the rows that no element of the index names.
Tensor named_rows(const Tensor& table, const Tensor& index);

}  // namespace reel::primitive
