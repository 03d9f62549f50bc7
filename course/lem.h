// Lecture 5: the parameters of LEM (Rusch et al. 2022).
#pragma once
#include "ops/ops.h"

namespace course {

/// One of LEM's four layers. Called with a state [B, n] and an input [B, i] it gives W state + V input + b, [B, n].
struct Layer {
  reel::Tensor W, V, b;
  reel::Tensor operator()(const reel::Tensor& state, const reel::Tensor& input) const {
    return linear(state, W) + linear(input, V, b);
  }
};

/// All of them: two for the steps in time, one for each of the states.
struct Lem {
  Layer one, two, z, y;
};

}  // namespace course
