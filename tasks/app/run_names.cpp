#include "tasks/app/run_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tasks/app/options.h"
#include "tasks/app/options_file.h"

namespace reel {

namespace {

namespace fs = std::filesystem;

using Values = std::map<std::string, std::string>;

/// Options that a legend does not name: a folder of data sets has many names.
bool is_silent(const std::string& option) { return changes_nothing(option) || option == "data"; }

/// The options of a run without those for which `left_out` is true; none if they cannot be read.
Values options_of(const std::string& folder, bool (*left_out)(const std::string&)) {
  Values values;
  try {
    for (const FileValue& v : read_options_file(folder + "/config.toml"))
      if (v.type != "table" && !left_out(v.name)) values[v.name] = v.text;
  } catch (const Usage&) {  // not a run of ours, or half written
  }
  return values;
}

std::string folder_name(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

}  // namespace

bool only_shows(const std::string& option) {
  static const std::set<std::string> options{"picture", "picture-size", "picture-font", "tensorboard", "no-report"};
  return options.contains(option);
}

bool changes_nothing(const std::string& option) {
  static const std::set<std::string> options{"out",           "device",      "threads", "quiet",
                                             "no-graph",      "list-cells",  "no-test", "checkpoint-every",
                                             "rank-patience", "solved-below"};
  return only_shows(option) || options.contains(option);
}

std::vector<std::string> names_of_runs(const std::vector<std::string>& folders, bool seeds) {
  std::vector<Values> runs;
  std::map<std::string, std::set<std::string>> seen;  // the values of each option
  for (const std::string& folder : folders) {
    runs.push_back(options_of(folder, is_silent));
    for (const auto& [option, value] : runs.back()) seen[option].insert(value);
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> words;
    if (runs[i].count("cell")) words.push_back(runs[i]["cell"]);
    for (const auto& [option, value] : runs[i])
      if (option != "cell" && seen[option].size() > 1 && (option != "seed" || seeds))
        words.push_back(option + " " + (value.empty() ? "none" : value));
    if (runs[i].empty() || std::count(runs.begin(), runs.end(), runs[i]) > 1) words.push_back(folder_name(folders[i]));
    names.push_back(fmt::format("{}", fmt::join(words, ", ")));
  }
  return names;
}

std::string options_text(const std::string& folder) {
  const Values values = options_of(folder, only_shows);
  std::string out;
  for (const auto& [option, value] : values) out += fmt::format("{}={}\n", option, value);
  return values.contains("seed") ? out : "";
}

}  // namespace reel
