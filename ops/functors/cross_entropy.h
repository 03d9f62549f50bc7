// The kernel of the cross entropy, which is never in a loop: there it is composed of other kernels (ops/losses.cpp).
#pragma once
#include "engine/device/kernels.h"

namespace reel {

struct CrossEntropyArgs {  // of each row of logits [rows, n]: loss[r] = -log p[target[r]], p = softmax(logits[r]);
                           // residual[r] = p, less 1 at the target. Throws RuleError unless 0 <= target[r] < n
  DType dtype;
  std::int64_t rows, n;
  const void* logits;
  const std::int32_t* target;
  void *loss, *residual;
};

}  // namespace reel
