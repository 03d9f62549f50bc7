#include "tasks/app/observers.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/app/preset.h"
#include "tasks/app/tensorboard.h"
#include "tasks/io/files.h"
#include "tasks/page/run_page.h"

namespace reel {

std::string preset_of(const RunFolder& folder, const std::string& task) try {
  std::error_code error;
  const std::string path = folder.file("run.json");
  if (!std::filesystem::exists(path, error)) return "";
  const auto json = nlohmann::json::parse(read_file(path), nullptr, false);
  if (!json.is_object() || !json.contains("preset") || !json["preset"].is_string()) return "";
  return find_preset(json["preset"], task).preset.name;
} catch (const Error&) {
  return "";
}

std::vector<std::unique_ptr<Observer>> observers_of(const Shared& s, const RunFolder& folder, const std::string& title,
                                                    const std::string& task) {
  std::vector<std::unique_ptr<Observer>> out;
  if (!s.no_report)
    out.push_back(std::make_unique<page::RunPage>(fmt::format("{} with {}", title, s.cell), s.train.preset, task));
  if (!s.tensorboard.empty()) out.push_back(std::make_unique<TensorBoard>(s.tensorboard, folder));
  return out;
}

}  // namespace reel
