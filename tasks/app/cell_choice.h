// The options of programs that take one cell with weights from a file: apply, to_onnx.
#pragma once
#include <memory>

#include "cells/cell.h"
#include "tasks/app/options.h"

namespace reel {

struct CellChoice {
  std::string cell = "srnn", weights, dtype = "f32";
  std::int64_t input_size = 1, hidden = 128, layer = 1;
  std::uint64_t seed = 1;
  bool or_untrained = false;  // also takes the weights of a checkpoint before the first update

  /// Adds --cell, its sizes, --dtype, --seed and the settings of all cells to the group "Model".
  void add(Options& options);
  /// Adds --weights and --layer to the group "Files".
  void add_weights(Options& options);
  /// The cell, with the weights of the file if there is one: then their shapes tell the sizes that are not given. What
  /// a user should know of the weights goes to stderr after the program's name. Throws Usage for settings that do not
  /// fit, Error for weights that do not.
  std::unique_ptr<Cell> make(const Options& options, const std::string& program, Backend& device) const;
};

}  // namespace reel
