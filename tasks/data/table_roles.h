// Which column of a table is what.
#pragma once
#include "tasks/data/table_data.h"

namespace reel {

/// A spec with the names of inputs and targets, and whether it answers at each step; `classes` is filled by table_data.
/// Throws SettingError or FileError for options that do not go with the table.
TableSpec table_roles(const Table& table, const TableOptions& options);

/// True if the target is a class: as the option says, or else if it is text, or integers of an array.
bool predicts_class(const Table& table, const TableSpec& spec, const TableOptions& options);

/// "a,b,c" as its parts, without spaces around them; a part with a comma has quotes around it, as in CSV.
std::vector<std::string> names_in(const std::string& list);

}  // namespace reel
