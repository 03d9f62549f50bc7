// Assignment 4: what a network remembers. Replace each BLANK.
#pragma once
#include <cmath>

#include "course/check.h"
#include "ops/ops.h"

namespace answer {

using namespace reel;

/// A gradient is multiplied by an eigenvalue of this modulus at each step. After how many steps is it down to `share`
/// of what it was? Both are between 0 and 1; the answer need not be an integer.
inline double horizon(double modulus, double share) { BLANK; }

/// An orthogonal matrix from any square matrix M: make it skew-symmetric, A = M - M^T, and take the Cayley transform
/// W = (I + A)^-1 (I - A). solve(P, Q) is P^-1 Q, and eye(n, DType::f64) is I.
inline Tensor orthogonal(const Tensor& M) { BLANK; }

/// A step of minGRU (Feng et al. 2024) for x [B, i] and h [B, n]:
///   z = sigmoid(W_z x + b_z)      how much to write
///   v = W_h x + b_h               what to write
///   h' = (1 - z) h + z v
/// linear(x, W, b) is W x + b for each row of x.
inline Tensor mingru(const Tensor& h, const Tensor& x, const Tensor& W_z, const Tensor& b_z, const Tensor& W_h,
                     const Tensor& b_h) {
  BLANK;
}

/// A gate f = sigmoid(b) multiplies a memory at each step. Which b keeps half of it after T steps?
inline double forget_bias(double T) { BLANK; }

}  // namespace answer
