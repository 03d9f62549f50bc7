#include "tasks/app/output_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "tasks/app/options.h"
#include "tasks/io/files.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr const char* files_of_runs[] = {"config.toml",      "metrics.csv", "run.json",        "data.json",
                                         "model.json",       "table.json",  "vocabulary.json", "checkpoint.safetensors",
                                         "best.safetensors", "curve.svg",   "report.html",     "lock"};

/// Where the path leads, whether or not a file is there.
fs::path place(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::path(path) : real;
}

bool same(const std::string& a, const std::string& b) {
  std::error_code error;
  return place(a) == place(b) || fs::equivalent(a, b, error);
}

}  // namespace

void require_output_file(const std::string& option, const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& inputs) {
  if (path.empty()) return;
  require_writable(path);
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return;  // a device loses nothing
  for (const auto& [name, input] : inputs)
    if (!input.empty() && same(path, input))
      throw Usage(fmt::format("--{} {}: this is the file of --{}, which would be lost. Hint: another name", option,
                              path, name));
  const fs::path real = place(path);
  if (std::find(std::begin(files_of_runs), std::end(files_of_runs), real.filename()) == std::end(files_of_runs)) return;
  if (fs::exists(real.parent_path() / "config.toml", error))
    throw Usage(fmt::format(
        "--{} {}: this is a file of the run in that folder, which would be lost. Hint: another name", option, path));
}

}  // namespace reel
