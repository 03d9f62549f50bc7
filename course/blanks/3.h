// Assignment 3: derivatives of operations on tensors, and the reverse sweep. Replace each BLANK.
#pragma once
#include <map>

#include "course/backward.h"
#include "course/check.h"
#include "ops/ops.h"

namespace answer {

using namespace reel;

/// The gradient of x for y = tanh(x), from dy, the gradient of y. All have one shape.
inline Tensor tanh_backward(const Tensor& x, const Tensor& y, const Tensor& dy) { BLANK; }

/// The gradients of a and b for y = a * b, of one shape, real or complex.
inline Tensors mul_backward(const Tensor& a, const Tensor& b, const Tensor& dy) { BLANK; }

/// The gradients of A [n, k] and B [k, m] for Y = A B, from dY [n, m]; all are real. transpose() swaps the last two
/// axes.
inline Tensors matmul_backward(const Tensor& A, const Tensor& B, const Tensor& dY) { BLANK; }

/// The gradient of a scalar y with respect to every value that it depends on, under the value's id: tensor.id().
/// tape.size() is the number of operations, tape.inputs(tape.node(i)) and tape.outputs(tape.node(i)) are the tensors of
/// one, and course::backward(tape, i, dy) goes back through it. sum_to(d, shape) undoes broadcasting.
inline std::map<std::uint64_t, Tensor> sweep(const Tape& tape, const Tensor& y) { BLANK; }

}  // namespace answer
