// What a model is made of, in a file beside its weights, so that a run can be used without its program.
#pragma once
#include <string>

#include "tasks/training/model.h"

namespace reel {

struct ModelConfig {
  std::string task;
  ModelShape shape;
  ModelOptions options;
  DType dtype = DType::f32;
};

/// Replaces the JSON file atomically; throws Error where the disk refuses.
void save_model_config(const std::string& path, const ModelConfig& config);
/// The text of such a file.
std::string model_config_text(const ModelConfig& config);
/// Throws Error with the path and what is wrong: it is missing, is not JSON, has a field too little, too much, or of
/// another type, a value out of range, or a cell that is not there without the plugins of its run.
ModelConfig load_model_config(const std::string& path);
/// The same from the text of such a file.
ModelConfig parse_model_config(const std::string& path, const std::string& text);

}  // namespace reel
