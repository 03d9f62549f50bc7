// Assignment 3, solved.
#pragma once
#include <map>

#include "course/backward.h"
#include "course/check.h"
#include "ops/ops.h"

namespace answer {

using namespace reel;

inline Tensor tanh_backward(const Tensor&, const Tensor& y, const Tensor& dy) { return dy * (1 - y * y); }

inline Tensors mul_backward(const Tensor& a, const Tensor& b, const Tensor& dy) { return {dy * conj(b), dy * conj(a)}; }

inline Tensors matmul_backward(const Tensor& A, const Tensor& B, const Tensor& dY) {
  return {matmul(dY, transpose(B)), matmul(transpose(A), dY)};
}

inline std::map<std::uint64_t, Tensor> sweep(const Tape& tape, const Tensor& y) {
  const NoGrad pause;  // the sweep's own operations are not recorded
  std::map<std::uint64_t, Tensor> gradient;
  gradient[y.id()] = Tensor::full({}, 1, y.dtype());
  for (std::size_t i = tape.size(); i-- > 0;) {
    const auto in = tape.inputs(tape.node(i)), out = tape.outputs(tape.node(i));
    const auto dy = gradient.find(out[0].id());
    if (dy == gradient.end()) continue;  // y does not depend on it
    const Tensors d = course::backward(tape, i, dy->second);
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (!d[k].defined()) continue;
      const Tensor part = sum_to(d[k], in[k].shape());
      Tensor& sum = gradient[in[k].id()];
      sum = sum.defined() ? sum + part : part;
    }
  }
  return gradient;
}

}  // namespace answer
