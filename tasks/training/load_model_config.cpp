// model.json of a run, whose cells must be there, and the hint where they are not.
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/io/files.h"
#include "tasks/training/model_file.h"

namespace reel {

namespace {
/// The plugins that the run of this file had, as REEL_PLUGINS has them; empty if run.json beside it says nothing.
std::string plugins_of(const std::string& path) {
  const std::filesystem::path record = std::filesystem::path(path).replace_filename("run.json");
  if (std::error_code error; !std::filesystem::is_regular_file(record, error)) return "";
  const auto json = nlohmann::json::parse(read_file(record, 1 << 24), nullptr, false);
  if (!json.is_object() || !json.contains("plugins") || !json["plugins"].is_array()) return "";
  std::vector<std::string> plugins;
  for (const auto& one : json["plugins"])
    if (one.is_string()) plugins.push_back(one.get<std::string>());
  return fmt::format("{}", fmt::join(plugins, ":"));
}
}  // namespace

ModelConfig load_model_config(const std::string& path) {
  ModelConfig config = parse_model_config(path, read_file(path, 1 << 20));
  for (const LayerOptions& layer : layers_of(config.options)) {
    if (find_cell(layer.cell)) continue;
    if (const std::string plugins = plugins_of(path); !plugins.empty())
      throw Error(path, fmt::format("there is no cell \"{}\"; the run had plugins. Hint: REEL_PLUGINS={}, or "
                                    "load_plugin(FILE) in a program of your own",
                                    layer.cell, plugins));
  }
  return config;
}

}  // namespace reel
