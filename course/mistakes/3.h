// Mistakes that many make in assignment 3: each gets a sentence of its own.
#pragma once
#include <map>

#include "course/backward.h"
#include "course/check.h"
#include "ops/ops.h"

namespace answer {

using namespace reel;

inline Tensor tanh_backward(const Tensor& x, const Tensor&, const Tensor& dy) { return dy * (1 - x * x); }

/// Right for real numbers only.
inline Tensors mul_backward(const Tensor& a, const Tensor& b, const Tensor& dy) { return {dy * b, dy * a}; }

inline Tensors matmul_backward(const Tensor& A, const Tensor& B, const Tensor& dY) {
  return {matmul(dY, B), matmul(A, dY)};
}

/// Replaces gradients instead of adding them, and forgets broadcasting.
inline std::map<std::uint64_t, Tensor> sweep(const Tape& tape, const Tensor& y) {
  std::map<std::uint64_t, Tensor> gradient;
  gradient[y.id()] = Tensor::full({}, 1, y.dtype());
  for (std::size_t i = tape.size(); i-- > 0;) {
    const auto in = tape.inputs(tape.node(i)), out = tape.outputs(tape.node(i));
    const Tensors d = course::backward(tape, i, gradient[out[0].id()]);
    for (std::size_t k = 0; k < in.size(); ++k) gradient[in[k].id()] = d[k];
  }
  return gradient;
}

}  // namespace answer
