#include "tasks/data/table_of_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tasks/data/data_error.h"

namespace reel {

std::optional<TableSpec> table_of_run(const std::string& run, const std::string& task) {
  const std::string path = run + "/table.json";
  std::error_code error;
  if (std::filesystem::exists(path, error)) return TableSpec::load(path);
  if (task == "table")
    throw FileError(path,
                    "is gone: without it, nobody knows how the columns of this run are scaled. Hint: put it back");
  return std::nullopt;
}

std::vector<std::string> changed_columns(const TableSpec& before, const TableSpec& now) {
  std::vector<std::string> changes;
  const auto compare = [&](const char* kind, const std::vector<std::string>& a, const std::vector<std::string>& b) {
    const std::size_t common = std::min(a.size(), b.size());
    const auto at = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin()).first - a.begin());
    if (at < common) changes.push_back(fmt::format("{} {} was \"{}\" and is \"{}\"", kind, at + 1, a[at], b[at]));
  };
  compare("input", before.input_names(), now.input_names());
  compare("target", before.target_names(), now.target_names());
  compare("class", before.classes, now.classes);
  return changes;
}

}  // namespace reel
