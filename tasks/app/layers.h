// --cell and --hidden as layers: one of each makes layers that are alike, lists make a stack of unlike ones.
#pragma once
#include "tasks/app/options.h"
#include "tasks/training/model.h"

namespace reel {

/// Sets the cell, its size and its settings, or the stack where a list has several: a list of one stands for all
/// layers. Throws Usage where two lists, or a list and --layers, do not fit.
void set_layers(ModelOptions& model, const std::string& cells, const std::string& hidden, const Options& options);

}  // namespace reel
