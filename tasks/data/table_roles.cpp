#include "tasks/data/table_roles.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tasks/data/data_error.h"

namespace reel {

namespace {

/// Throws SettingError unless the table has these columns.
void require(const Table& table, const char* option, const std::vector<std::string>& names) {
  try {
    find_columns(table.path, table.names(), names);
  } catch (const FileError& e) {
    throw SettingError(option, e.what());
  }
}

/// What is wrong with a column of text, with one more thing to do about it.
FileError hinted(const Column& column, const std::string& hint) {
  const bool more = column.problem.find(". Hint: ") != std::string::npos;
  return FileError(fmt::format("{}{}{}", column.problem, more ? "; " : ". Hint: ", hint));
}

std::vector<std::string> chosen(const Table& table, const char* option, const std::string& list) {
  std::vector<std::string> names = names_in(list);
  require(table, option, names);
  std::set<std::string> before;
  for (const std::string& name : names)
    if (!before.insert(name).second) throw SettingError(option, fmt::format("\"{}\" is there twice", name));
  return names;
}

std::vector<std::string> targets_of(const Table& table, const TableOptions& o) {
  std::vector<std::string> targets = o.target.empty() ? table.targets : chosen(table, "target", o.target);
  if (targets.empty())
    throw SettingError(
        "target", fmt::format("the column to predict is expected; {} has {}", table.path, listed_names(table.names())));
  return targets;
}

std::vector<std::string> inputs_of(const Table& table, const std::vector<std::string>& targets, const TableOptions& o) {
  std::vector<std::string> inputs = chosen(table, "inputs", o.inputs);
  const std::set<std::string> aims(targets.begin(), targets.end());
  for (const std::size_t i : find_columns(table.path, table.names(), inputs))
    if (table.columns[i].is_text())
      throw hinted(table.columns[i], "a column of text must be made numbers before it is an input");
  if (inputs.empty()) {
    for (const Column& column : table.columns) {
      const bool taken = column.name == o.group || column.name == o.time;
      if (taken || (o.horizon == 0 && aims.contains(column.name))) continue;
      if (column.is_text() && column.some_numbers) throw hinted(column, "--inputs names the columns to read");
      if (!column.is_text()) inputs.push_back(column.name);
    }
    if (inputs.empty()) throw SettingError("inputs", table.path + " has no other column of numbers");
  }
  for (const std::string& name : inputs)
    if (o.horizon == 0 && aims.contains(name))
      throw SettingError("inputs",
                         fmt::format("\"{}\" is the target. Hint: --horizon N predicts it N rows later", name));
  return inputs;
}

}  // namespace

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names(list.empty() ? 0 : 1);
  bool within = false;  // quotes
  const auto trim = [](std::string& name) {
    name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
    name.erase(name.find_last_not_of(' ') + 1);
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"' && within) {
      within = list.substr(i + 1, 1) == "\"";  // doubled: one of the name
      if (within) names.back() += list[++i];
    } else if (list[i] == '"' && names.back().find_first_not_of(' ') == std::string::npos) {
      within = true;
      names.back().clear();
    } else if (list[i] == ',' && !within) {
      trim(names.back());
      if (i + 1 < list.size()) names.emplace_back();
    } else {
      names.back() += list[i];
    }
  }
  if (!names.empty()) trim(names.back());
  return names;
}

TableSpec table_roles(const Table& table, const TableOptions& o) {
  if (!o.group.empty()) require(table, "group", {o.group});
  if (!o.time.empty()) require(table, "time", {o.time});
  if (!o.group.empty() && !table.sequences.empty())
    throw SettingError("group", table.path + " has sequences [N, T, F] already");
  const std::vector<std::string> targets = targets_of(table, o);
  for (const std::string& name : targets)
    if (name == o.group || name == o.time)
      throw SettingError("target",
                         fmt::format("\"{}\" is the column of {}, too", name, name == o.group ? "--group" : "--time"));
  const bool for_sequences = !table.targets.empty() && !table.target_each && targets == table.targets;
  if (for_sequences && o.at == "each")
    throw SettingError("at", "y has one entry for a sequence, not one for each step");
  if (for_sequences && o.split == "time")
    throw SettingError("split", "time: y has one entry for a whole sequence. Hint: --split group");
  if (for_sequences && (o.horizon > 0 || o.window > 0))
    throw SettingError(o.horizon > 0 ? "horizon" : "window", "y has one entry for a whole sequence");
  TableSpec spec;
  for (const std::string& name : inputs_of(table, targets, o)) spec.inputs.push_back({.name = name});
  for (const std::string& name : targets) spec.targets.push_back({.name = name});
  spec.each = o.at == "each" || (o.at == "auto" && table.target_each);
  spec.group = o.group, spec.time = o.time, spec.missing = o.missing;
  spec.window = o.window, spec.horizon = o.horizon;
  spec.data_bytes = table.bytes, spec.data_crc32 = table.crc32;
  return spec;
}

bool predicts_class(const Table& table, const TableSpec& spec, const TableOptions& o) {
  const Column& first = table.at(spec.targets[0].name);
  if (o.predict == "auto" && first.is_text() && first.some_numbers)
    throw hinted(first, "--predict class takes all of them as names of classes");
  const bool is_class = o.predict == "class" || (o.predict == "auto" && (first.is_text() || first.whole));
  if (is_class && spec.targets.size() > 1) {
    const std::vector<std::string> targets = spec.target_names();
    const auto text =
        std::find_if(targets.begin(), targets.end(), [&](auto& name) { return table.at(name).is_text(); });
    throw SettingError("predict",
                       "one column is expected as the target of classes. Hint: " +
                           (text == targets.end() ? "--predict value"
                                                  : fmt::format("\"{}\" is text, so it is the only --target", *text)));
  }
  if (!is_class) table.numbers(spec.target_names());  // throws for text
  return is_class;
}

}  // namespace reel
