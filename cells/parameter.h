// A named tensor of a model, and what optimisers and files know of it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/core/tensor.h"

namespace reel {

/// A tensor that belongs to a model. Its elements are updated in place, so every copy of the handle sees the update.
struct Parameter {
  std::string name;
  Tensor value;
  std::string group = "";  // parameters of one group share a learning rate; "" is the main group
  bool trained = true;     // false: saved with the model, but neither counted nor updated (a permutation, a base point)
  std::int64_t free = -1;  // how many real numbers are used (a triangle); -1: all of them
  /// Replaces the optimiser's rule: moves the value by `rate` against its gradient, along a manifold, in place
  /// (assign).
  std::function<void(Tensor& value, const Tensor& gradient, double rate)> retract = {};

  /// The number of real values that are trained.
  std::int64_t count() const {
    if (!trained) return 0;
    return free >= 0 ? free : value.numel() * (is_complex(value.dtype()) ? 2 : 1);
  }
};

/// Appends a parameter. Error if its name is none, if it has no tensor, if it cannot be trained, or if another one has
/// its name or its tensor.
void append(std::vector<Parameter>& parameters, Parameter parameter);

}  // namespace reel
