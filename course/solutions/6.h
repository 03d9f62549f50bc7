// Assignment 6, solved.
#pragma once
#include <algorithm>

#include "course/check.h"
#include "course/weights.h"
#include "engine/scan/program.h"

namespace answer {

using namespace reel;
using course::Weights;
using Cost = Program::Cost;

inline Cost product(double B, double k, double n) { return {2 * B * k * n, 4 * (B * k + k * n + B * n)}; }

inline double seconds(const Cost& cost, double rate, double bandwidth) {
  return std::max(cost.flops / rate, cost.bytes / bandwidth);
}

inline double chain_bytes(double calls, double n, bool fused) { return 4 * 2 * n * (fused ? 1 : calls); }

inline double lstm_operations(double T, double B, double i, double n) {
  const double of_h = 3 * product(B, n, n).flops;  // forward, by h, by R
  const double of_x = 2 * product(B, i, n).flops;  // forward, by W
  return T * 4 * (of_h + of_x);
}

inline double one_kernel_gain(double T, double calls, double launch, double barriers, double barrier) {
  return T * calls * launch / (launch + T * barriers * barrier);
}

inline Tensor fast_step(const Tensor& h, const Tensor& x, const Weights& w) {
  const std::int64_t n = h.dim(1), i = x.dim(1);
  const Tensor of_h = slice(w.G, 1, 0, n), of_x = slice(w.G, 1, n, n + i);
  const Tensor gate = sigmoid(linear(x, of_x, w.b) + linear(h, of_h));  // the first product leaves the loop
  const Tensor low = matmul(matmul(h, w.A), w.B);                       // r columns between, not n
  const Tensor high = linear(h, slice(w.R, 0, 0, n));                   // slices of weights leave the loop, too
  return (1 - gate) * h + gate * tanh(low + high);
}

}  // namespace answer
