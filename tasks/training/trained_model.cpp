#include "tasks/training/trained_model.h"

#include <algorithm>
#include <filesystem>

#include "tasks/training/checkpoint.h"
#include "tasks/training/device.h"

namespace reel {

namespace {

ModelConfig config_of(const std::string& run) {
  const std::string path = run + "/model.json";
  if (std::filesystem::exists(path)) return load_model_config(path);
  if (!std::filesystem::exists(run + "/config.toml")) throw Error(run, "is not the folder of a run");
  throw Error(run,
              "has no model.json: its task has a model of its own, or an older Reel made the run. Hint: the program "
              "of its task with --resume writes the file");
}

/// Gives the model the parameters of a file that may hold more, as a checkpoint does.
void take_parameters(const std::string& path, const Model& model) {
  const TensorFile file = load_safetensors(path);
  Named places;
  for (const Parameter& p : model.parameters()) places.emplace_back(p.name, p.value);
  check_tensors(path, file, places, file.tensors.size() - std::min(places.size(), file.tensors.size()));
  for (const auto& [name, place] : places) fill_from(file.at(name), place);
}

}  // namespace

TrainedModel load_trained_model(const std::string& run) {
  const ModelConfig config = config_of(run);
  std::string weights = run + "/best.safetensors";
  if (!std::filesystem::exists(weights)) weights = run + "/checkpoint.safetensors";
  TrainedModel out{config, Model(config.shape, config.options, Init(1, config.dtype)), weights};
  take_parameters(weights, out.model);
  return out;
}

}  // namespace reel
