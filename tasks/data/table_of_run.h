// The table.json of a run folder, and what the tables of two runs have in common.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tasks/data/table_spec.h"

namespace reel {

/// What table.json in the folder of a run of this task says; nothing if there is none, as in those of other tasks.
/// Throws FileError if a run of `table` has lost it: without it, numbers would be read and answered unscaled.
std::optional<TableSpec> table_of_run(const std::string& run, const std::string& task);

/// Where the columns of a model differ from those that its first parameters were trained on, a line for each kind:
/// "input 1 was \"a\" and is \"b\"". Parameters know columns and classes by their places alone.
std::vector<std::string> changed_columns(const TableSpec& before, const TableSpec& now);

}  // namespace reel
