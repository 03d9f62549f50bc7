// Explanations of a step: of a cell, or of any function of a state and an input.
#pragma once
#include "cells/cell.h"
#include "tasks/explain/explanation.h"

namespace reel::explain {

struct StepOptions {
  std::int64_t batch = 20, length = 200;
  bool backward = false;    // the gradient, too
  int measured = 0;         // how often to run it for the times; 0: not measured
  double product_rate = 0;  // operations a second, for the bound; 0: measured, if anything is
  ScanPasses passes = {};
};

/// The device that loops are watched on: it computes on `device`, and lives as long as the process, as plans do.
LoopDevice& watched(Backend& device);

/// A cell that was made on a watched device, on inputs [length, batch, cell.input].
Explanation explain_cell(LoopDevice& device, const std::string& name, const Cell& cell, const StepOptions& options);

/// A step on a state and xs [T, ...] on any device; `batch` and `length` are theirs. Its parameters are what it uses
/// besides; `consts` names them by their ids.
Explanation explain_step(const std::string& title, const Step& step, const Tensors& state, const Tensors& xs,
                         const ArgumentNames& names, const StepOptions& options);

/// What a training step of a model does: `step` computes on the watched device. Its parameters have names.
Explanation explain_training(LoopDevice& device, const std::string& title, const std::vector<Parameter>& parameters,
                             const StepOptions& options, const std::function<void()>& step);

}  // namespace reel::explain
