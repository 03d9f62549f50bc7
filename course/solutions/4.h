// Assignment 4, solved.
#pragma once
#include <cmath>

#include "course/check.h"
#include "ops/ops.h"

namespace answer {

using namespace reel;

inline double horizon(double modulus, double share) { return std::log(share) / std::log(modulus); }

inline Tensor orthogonal(const Tensor& M) {
  const Tensor A = M - transpose(M), I = eye(M.dim(0), DType::f64);
  return solve(I + A, I - A);
}

inline Tensor mingru(const Tensor& h, const Tensor& x, const Tensor& W_z, const Tensor& b_z, const Tensor& W_h,
                     const Tensor& b_h) {
  const Tensor z = sigmoid(linear(x, W_z, b_z)), v = linear(x, W_h, b_h);
  return (1 - z) * h + z * v;
}

inline double forget_bias(double T) {
  const double f = std::pow(0.5, 1 / T);  // f^T = 1/2
  return std::log(f / (1 - f));
}

}  // namespace answer
