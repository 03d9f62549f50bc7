#include "tasks/training/trained_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tasks/training/checkpoint.h"
#include "tasks/training/device.h"

namespace reel {

namespace {

/// True also for what cannot be looked at, such as a link that leads to itself: reading it tells why.
bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::string weights_of(const std::string& run) {
  const std::string best = run + "/best.safetensors";
  return is_there(best) ? best : run + "/checkpoint.safetensors";
}

ModelConfig config_of(const std::string& run) {
  const std::string path = run + "/model.json";
  if (is_there(path)) return load_model_config(path);
  if (!is_there(run + "/config.toml"))
    throw Error(run, is_there(run) ? "is not the folder of a run" : "does not exist");
  const std::string weights = weights_of(run);
  const TensorFile file = is_there(weights) ? load_safetensors(weights) : TensorFile();
  const auto& names = file.tensors;
  if (!names.empty() &&
      std::none_of(names.begin(), names.end(), [](const auto& t) { return t.first.starts_with("cell"); }))
    throw Error(run,
                "is a run whose task has a model of its own, as babi has: only the program of the task can use it");
  throw Error(run,
              "has no model.json, as an older Reel made the run. Hint: the program of its task with --resume writes "
              "the file");
}

/// What a checkpoint holds beside the parameters.
bool is_of_training(const std::string& name) { return name.starts_with("optimizer.") || name.starts_with("carry."); }

/// What a model without this tensor lacks, as far as its name says it: an option.
std::string option_of(const std::string& tensor, const Named& places) {
  const auto has = [&](const std::string& start) {
    return std::any_of(places.begin(), places.end(), [&](const auto& p) { return p.first.starts_with(start); });
  };
  if (tensor.starts_with("norm")) return has("norm") ? "--layers" : "--layer-norm";
  if (tensor.find(".backward.") != tensor.npos) return "--bidirectional";
  if (tensor == "embedding") return "--input embedding";
  if (!tensor.starts_with("cell")) return "";
  return has(tensor.substr(0, tensor.find('.') + 1)) ? "a setting of the cell" : "--layers";
}

/// Throws OtherModel if the file has parameters for which the model has no place: it would work as another one.
void check_extra(const std::string& path, const TensorFile& file, const Named& places) {
  constexpr std::size_t most = 4;  // named
  std::set<std::string_view> known;
  for (const auto& [name, place] : places) known.insert(name);
  std::vector<std::string> extra;
  for (const auto& [name, tensor] : file.tensors)
    if (!known.contains(name) && !is_of_training(name)) extra.push_back(name);
  if (extra.empty()) return;
  const std::string option = option_of(extra[0], places);
  const std::size_t more = extra.size() - std::min(extra.size(), most);
  extra.resize(extra.size() - more);
  throw OtherModel("checkpoint", fmt::format("{}: the model has no {}{}{}", path, fmt::join(extra, ", "),
                                             more > 0 ? fmt::format(" and {} more", more) : "",
                                             option.empty() ? "" : ", which " + option + " adds"));
}

void take_from_file(const std::string& path, const Model& model, bool or_untrained = false) {
  const TensorFile file = load_safetensors(path, model.parameters().at(0).value.backend());
  Named places;
  for (const Parameter& p : model.parameters()) places.emplace_back(p.name, p.value);
  check_tensors(path, file, places, file.tensors.size() - std::min(places.size(), file.tensors.size()));
  check_extra(path, file, places);
  if (!or_untrained) require_updates(path, file);
  for (const auto& [name, place] : places) fill_from(file.at(name), place);
}

}  // namespace

void require_updates(const std::string& path, const TensorFile& file) {
  const auto step = file.metadata.find("step");
  if (step == file.metadata.end() || step->second != "0" || !file.metadata.contains("schedule")) return;
  throw Error(path,
              "its run has done no update, so the parameters are initial values. Hint: the program of its task with "
              "--resume trains it; a run that diverged at once needs a new start with a smaller --lr");
}

void take_parameters(const std::string& run_or_file, const Model& model) {
  take_from_file(is_folder(run_or_file) ? weights_of(run_or_file) : run_or_file, model);
}

std::string run_of_parameters(const std::string& run_or_file) {
  if (is_folder(run_or_file)) return run_or_file;
  return std::filesystem::absolute(run_or_file).parent_path();
}

TrainedModel load_trained_model(const std::string& run, bool or_untrained) {
  const ModelConfig config = config_of(run);
  TrainedModel out{config, Model(config.shape, config.options, Init(1, config.dtype)), weights_of(run)};
  take_from_file(out.weights, out.model, or_untrained);
  return out;
}

}  // namespace reel
