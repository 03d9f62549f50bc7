#include "tasks/data/table_of_run.h"

#include <filesystem>

#include "tasks/data/data_error.h"
#include "tasks/data/vocabulary.h"

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
    if (const std::string change = first_change(kind, a, b); !change.empty()) changes.push_back(change);
  };
  compare("input", before.input_names(), now.input_names());
  compare("target", before.target_names(), now.target_names());
  compare("class", before.classes, now.classes);
  return changes;
}

}  // namespace reel
