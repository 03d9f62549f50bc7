#include "tasks/app/init_from.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <map>

#include "tasks/data/data_error.h"
#include "tasks/training/checkpoint_file.h"
#include "tasks/training/trained_model.h"

namespace reel {

namespace {

/// What decides how a model computes with its parameters, by option.
std::map<std::string, std::string> options_of(const ModelConfig& config) {
  const ModelOptions o = with_all_settings(config.options);
  const auto on = [](bool value) { return value ? "on" : "off"; };
  std::map<std::string, std::string> all{{"layers", fmt::format("{}", layers_of(o).size())},
                                         {"bidirectional", on(o.bidirectional)},
                                         {"layer-norm", on(o.layer_norm)},
                                         {"residual", on(o.residual)},
                                         {"zoneout", fmt::format("{}", o.zoneout)},
                                         {"dtype", std::string(name_of(config.dtype))}};
  if (config.shape.vocabulary > 0) {
    all["input"] = o.input;
    if (o.input == "embedding") all["embedding"] = fmt::format("{}", o.embedding);
  }
  std::vector<std::string> cells{o.cell}, hidden{fmt::format("{}", o.hidden)};
  if (!o.stack.empty()) cells.clear(), hidden.clear();
  for (const LayerOptions& layer : o.stack) {
    cells.push_back(layer.cell);
    hidden.push_back(fmt::format("{}", layer.hidden));
  }
  all["cell"] = fmt::format("{}", fmt::join(cells, ","));
  all["hidden"] = fmt::format("{}", fmt::join(hidden, ","));
  for (const LayerOptions& layer : layers_of(o))
    for (const auto& [name, value] : layer.settings) all[layer.cell + "." + name] = value;
  return all;
}

}  // namespace

std::vector<std::string> changed_options(const std::string& from, const ModelConfig& now) try {
  const std::string path = run_of_parameters(from) + "/model.json";
  if (std::error_code error; !std::filesystem::exists(path, error)) return {};
  const auto before = options_of(load_model_config(path)), after = options_of(now);
  std::vector<std::string> changes;
  for (const auto& [name, value] : after)  // settings of a cell that only one has are told by --cell
    if (const auto old = before.find(name); old != before.end() && old->second != value)
      changes.push_back(fmt::format("--{} was {} and is {}", name, old->second, value));
  return changes;
} catch (const OutOfMemory&) {
  throw;
} catch (const Error&) {  // the file is damaged, or names a cell that this program has not: the parameters decide
  return {};
}

void start_from(const std::string& from, const Model& model, const ModelConfig* config) try {
  take_parameters(from, model);
} catch (const OtherModel& e) {
  const std::vector<std::string> changes = config ? changed_options(from, *config) : std::vector<std::string>();
  const std::string known = changes.empty()
                                ? ", whose config.toml has them, and so must the numbers of inputs, targets, classes "
                                  "and symbols in the data"
                                : fmt::format(": {}", fmt::join(changes, ", "));
  throw SettingError(
      "init-from",
      fmt::format("{}. Hint: --cell, --hidden, --dtype and the like must be as in that run{}", e.what(), known));
} catch (const OutOfMemory&) {
  throw;
} catch (const Error& e) {
  if (std::error_code error; !std::filesystem::exists(from, error)) throw SettingError("init-from", e.what());
  throw FileError(fmt::format("--init-from: {}", e.what()));
}

}  // namespace reel
