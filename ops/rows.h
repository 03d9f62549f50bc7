// Helpers of ops on rows, which are functions of the last axis with their own kernel.
#pragma once
#include "ops/axes.h"

namespace reel {

/// The spec of in[0], without its last axis if `reduces`.
inline Spec row_spec(Inputs in, bool reduces) {
  const Tensor& x = in[0];
  if (!is_floating(x.dtype())) refuse(x.dtype(), is_complex(x.dtype()) ? "" : ". Hint: cast to f32");
  if (x.rank() == 0) rule_error("one axis or more is needed");
  return {x.dtype(), reduces ? x.shape().erase(x.rank() - 1) : x.shape(), &x.backend()};
}

/// Computes the function of each row of x.
inline void run_rows(RowFunction function, double parameter, const Tensor& x, Tensor& out) {
  out.backend().row_function(
      {function, x.dtype(), x.shape().product(0, x.rank() - 1), x.dim(-1), parameter, x.data(), out.data()});
}

/// The gradient of x where y = softmax(x).
inline Tensor softmax_gradient(const Tensor& y, const Tensor& dy) { return y * (dy - sum(dy * y, {-1}, true)); }

}  // namespace reel
