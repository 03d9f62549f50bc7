// What apply runs: a cell, or the whole model of a run.
#pragma once
#include <functional>

#include "tasks/training/trained_model.h"

namespace reel {

struct Subject {
  std::string text;  // "lstm with I = 3, N = 5"
  std::vector<Parameter> parameters;
  std::vector<State> states;  // of a stack: layer1.h, layer2.h, ...
  std::int64_t inputs = 0;    // numbers [T, B, inputs]; 0: symbols i32 [T, B]
  std::int64_t outputs = 0;
  bool every_step = true;  // outputs [T, B, outputs], or [B, outputs]
  DType dtype = DType::f32;
  std::function<Tensors(std::int64_t batch)> initial;
  /// Outputs and last states for x from these states; lengths i32 [B] or undefined.
  std::function<Sequence(const Tensors& state, const Tensor& x, const Tensor& lengths)> run;
};

/// The cell has to outlive the subject. `zoneout`: the rate at which its states kept their values in training.
Subject subject_of(const std::string& name, const Cell& cell, double zoneout = 0);
/// Likewise for the model of a run.
Subject subject_of(const TrainedModel& trained);

}  // namespace reel
