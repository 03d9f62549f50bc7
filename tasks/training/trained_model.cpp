#include "tasks/training/trained_model.h"

#include <algorithm>
#include <filesystem>

#include "tasks/training/checkpoint.h"
#include "tasks/training/device.h"

namespace reel {

namespace {

std::string weights_of(const std::string& run) {
  const std::string best = run + "/best.safetensors";
  return std::filesystem::exists(best) ? best : run + "/checkpoint.safetensors";
}

ModelConfig config_of(const std::string& run) {
  const std::string path = run + "/model.json";
  if (std::filesystem::exists(path)) return load_model_config(path);
  if (!std::filesystem::exists(run + "/config.toml"))
    throw Error(run, std::filesystem::exists(run) ? "is not the folder of a run" : "does not exist");
  const std::string weights = weights_of(run);
  const TensorFile file = std::filesystem::exists(weights) ? load_safetensors(weights) : TensorFile();
  const auto& names = file.tensors;
  if (!names.empty() &&
      std::none_of(names.begin(), names.end(), [](const auto& t) { return t.first.starts_with("cell"); }))
    throw Error(run,
                "is a run whose task has a model of its own, as babi has: only the program of the task can use it");
  throw Error(run,
              "has no model.json, as an older Reel made the run. Hint: the program of its task with --resume writes "
              "the file");
}

void take_from_file(const std::string& path, const Model& model) {
  const TensorFile file = load_safetensors(path, model.parameters().at(0).value.backend());
  Named places;
  for (const Parameter& p : model.parameters()) places.emplace_back(p.name, p.value);
  check_tensors(path, file, places, file.tensors.size() - std::min(places.size(), file.tensors.size()));
  for (const auto& [name, place] : places) fill_from(file.at(name), place);
}

}  // namespace

void take_parameters(const std::string& run_or_file, const Model& model) {
  take_from_file(std::filesystem::is_directory(run_or_file) ? weights_of(run_or_file) : run_or_file, model);
}

std::string run_of_parameters(const std::string& run_or_file) {
  if (std::filesystem::is_directory(run_or_file)) return run_or_file;
  return std::filesystem::absolute(run_or_file).parent_path();
}

TrainedModel load_trained_model(const std::string& run) {
  const ModelConfig config = config_of(run);
  TrainedModel out{config, Model(config.shape, config.options, Init(1, config.dtype)), weights_of(run)};
  take_from_file(out.weights, out.model);
  return out;
}

}  // namespace reel
