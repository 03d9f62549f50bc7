// What pictures call the layers of a model, and the directions of a bidirectional one.
#pragma once
#include <fmt/core.h>

#include <string>

#include "tasks/training/model.h"

namespace reel {

/// In names of files and tensors: "" if there is nothing else, "2-", or "2-backward-".
inline std::string layer_prefix(const std::vector<LayerInput>& layers, const LayerInput& one) {
  if (layers.size() == 1) return "";
  const bool both = layers.back().backward;
  return fmt::format("{}-{}", one.layer, !both ? "" : one.backward ? "backward-" : "forward-");
}

/// The same in words: "", " of layer 2", or " of layer 2, backward".
inline std::string layer_words(const std::vector<LayerInput>& layers, const LayerInput& one) {
  if (layers.size() == 1) return "";
  const bool both = layers.back().backward;
  return fmt::format(" of layer {}{}", one.layer, !both ? "" : one.backward ? ", backward" : ", forward");
}

}  // namespace reel
