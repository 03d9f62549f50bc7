// The few ops that the engine itself calls, when it adds up gradients and moves along time. It only declares them:
// their home is ops/, and the linker brings the two together.
#pragma once
#include "engine/tensor.h"

namespace reel::primitive {

/// a + b, same spec.
Tensor add(const Tensor& a, const Tensor& b);
/// x times a number.
Tensor scale(const Tensor& x, double factor);
/// Sums x over the axes along which `shape` was stretched to x's shape.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// The sum over the leading axis: [T, ...] -> [...].
Tensor sum_leading(const Tensor& x);
/// The real part of a complex tensor.
Tensor real_part(const Tensor& x);
/// x[t]: [T, ...] -> [...]; shares storage.
Tensor at(const Tensor& x, std::int64_t t);
/// x[first..last): [T, ...] -> [last - first, ...]; shares storage.
Tensor slice_leading(const Tensor& x, std::int64_t first, std::int64_t last);
/// Tensors of one spec as rows of a new leading axis.
Tensor stack(const Tensors& rows);
/// Tensors behind each other along the leading axis.
Tensor concat_leading(const Tensors& parts);
/// The same elements in another shape; shares storage.
Tensor reshape(const Tensor& x, const Shape& shape);

}  // namespace reel::primitive
