// Mistakes that many make in assignment 4: each gets a sentence of its own.
#pragma once
#include <cmath>

#include "course/check.h"
#include "ops/ops.h"

namespace answer {

using namespace reel;

inline double horizon(double modulus, double share) { return std::log(modulus) / std::log(share); }

inline Tensor orthogonal(const Tensor& M) {
  const Tensor I = eye(M.dim(0), DType::f64);
  return solve(I + M, I - M);
}

inline Tensor mingru(const Tensor& h, const Tensor& x, const Tensor& W_z, const Tensor& b_z, const Tensor& W_h,
                     const Tensor& b_h) {
  const Tensor z = sigmoid(linear(x, W_z, b_z)), v = linear(x, W_h, b_h);
  return z * h + (1 - z) * v;
}

inline double forget_bias(double T) { return std::pow(0.5, 1 / T); }

}  // namespace answer
