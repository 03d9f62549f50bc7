// Lecture 6: the network whose step is mended.
#pragma once
#include "ops/ops.h"

namespace course {

/// A gated network with n units and i inputs; A and B are a matrix of low rank, r much less than n.
struct Weights {
  reel::Tensor G, b;  // [n, n + i], [n]: the gate sees state and input
  reel::Tensor A, B;  // [n, r], [r, n]
  reel::Tensor R;     // [2 n, n]: only its first n rows are used so far
};

/// Its step, written without thought for what it costs. h is [B, n], x is [B, i].
inline reel::Tensor slow_step(const reel::Tensor& h, const reel::Tensor& x, const Weights& w) {
  using namespace reel;
  const std::int64_t n = h.dim(1);
  const Tensor gate = sigmoid(linear(concat({h, x}, 1), w.G, w.b));
  const Tensor low = matmul(h, matmul(w.A, w.B));
  const Tensor high = slice(linear(h, w.R), 1, 0, n);  // columns 0 to n - 1
  return (1 - gate) * h + gate * tanh(low + high);
}

}  // namespace course
