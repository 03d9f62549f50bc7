#include "tasks/app/preset.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cells/nearest_name.h"
#include "tasks/app/option.h"

namespace reel {

namespace fs = std::filesystem;

std::string presets_folder() {
  if (const char* given = std::getenv("REEL_PRESETS"); given && *given) return given;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path above = program.parent_path(), installed = fs::path("share") / "reel" / "presets";
  for (const fs::path& folder :
       {program / "presets", above / "presets", above / installed, above.parent_path() / installed})
    if (fs::is_directory(folder, error)) return folder;
  throw Error("presets", fmt::format("there is no folder presets in {} or beside it, and no {} above it. Hint: "
                                     "REEL_PRESETS=DIR names one.",
                                     program.string(), installed.string()));
}

std::string near_names(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t most = 6;
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& k : known)
    by_distance.emplace_back(k.find(name) != std::string::npos ? 0 : letters_changed(name, k), k);
  std::stable_sort(by_distance.begin(), by_distance.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<std::string> near;
  const std::size_t far =
      known.size() <= most ? name.npos : std::min(name.size(), 2 + name.size() / 4);  // another name
  for (std::size_t i = 0; i < std::min(most, by_distance.size()) && by_distance[i].first < far; ++i)
    near.push_back(by_distance[i].second);
  return near.empty() ? "" : fmt::format(", near ones are {}", fmt::join(near, ", "));
}

FoundPreset find_preset(const std::string& name, const std::string& task) {
  std::vector<std::string> known;
  for (const PresetTable& table : read_presets(presets_folder())) {
    for (const Preset& p : table.presets) {
      if (p.name == name && p.task != task)
        throw Usage(fmt::format("--preset {}: is one of the program {}", name, p.task));
      if (p.name == name) return {table, p};
      if (p.task == task) known.push_back(p.name);
    }
  }
  throw Usage(fmt::format("--preset {}: there is no such preset of {}{}. See --list-presets.", name, task,
                          near_names(name, known)));
}

std::string list_presets(const std::string& task) {
  std::string out;
  for (const PresetTable& table : read_presets(presets_folder())) {
    std::string lines;
    for (const Preset& p : table.presets) {
      if (!task.empty() && p.task != task) continue;
      const std::string unit = p.main().unit.empty() ? "" : " " + p.main().unit;
      lines += p.main().reported.empty() ? fmt::format("  {}\n", p.name)
                                         : fmt::format("  {:<32}  {}{}\n", p.name, p.main().reported, unit);
    }
    if (!lines.empty()) out += fmt::format("{} - {}, {}\n{}", table.title, table.paper, table.where, lines);
  }
  return out.empty() ? fmt::format("{} has no presets\n", task) : out;
}

}  // namespace reel
