// Compares derivatives with central differences, to test a function, an op or a cell of your own.
#pragma once
#include <functional>

#include "ops/ops.h"

namespace reel {

using TensorFunction = std::function<Tensor(const Tensors&)>;

/// How far derivatives are from central differences, relative to the larger of the two; near a minimum, where both are
/// about 0, to the slopes within the step of the differences. What differences lose by rounding, 1e-11 of the sum of
/// the magnitudes that they are made of, is taken off first.
struct GradErrors {
  double first = 0, second = 0;
};

/// The errors of the gradient of Re sum(conj(w) f(xs)) and of the gradient of its slope, w random, each along a random
/// direction of all xs. xs are f64 or c128; integers and booleans among them are left as they are. The same numbers for
/// the same seed; without `second` the second error is 0.
GradErrors grad_errors(const TensorFunction& f, const Tensors& xs, std::uint64_t seed = 1, bool second = true);

struct CheckGrads {
  int order = 2;            // 1: gradients; 2: gradients of gradients, too
  double tolerance = 1e-6;  // of grad_errors
  std::uint64_t seed = 1;   // of the directions
};

/// Throws Error if a derivative of f at xs is wrong; its text names the input and the errors. If f has a kink within
/// 1e-3 of xs, like relu at 0, the differences are wrong. Checks each input by itself, then all together.
void check_grads(const TensorFunction& f, const Tensors& xs, const CheckGrads& check = {}, Loc where = Loc::current());

}  // namespace reel
