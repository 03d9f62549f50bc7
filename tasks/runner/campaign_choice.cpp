#include <fmt/ranges.h>

#include <algorithm>

#include "tasks/app/options.h"
#include "tasks/runner/campaign.h"
#include "tasks/runner/program.h"

namespace reel {

namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The cell that a preset's options choose.
std::string cell_of(const Preset& p) {
  const auto at = std::find(p.options.rbegin(), p.options.rend(), "--cell");
  return at == p.options.rend() || at == p.options.rbegin() ? "" : *(at - 1);
}

std::vector<std::string> cells_of(const Preset& p) { return {p.model, cell_of(p)}; }
std::vector<std::string> cases_of(const Preset& p) { return {p.in_case}; }

/// Keeps the presets that have one of these names; throws Usage for a name that no preset has.
void keep(std::vector<PresetTable>& tables, const std::string& option, const std::vector<std::string>& wanted,
          std::vector<std::string> (*names_of)(const Preset&)) {
  if (wanted.empty()) return;
  std::vector<std::string> known;
  for (const PresetTable& table : tables)
    for (const Preset& p : table.presets)
      for (const std::string& name : names_of(p))
        if (!name.empty() && !has(known, name)) known.push_back(name);
  for (const std::string& name : wanted)
    if (!has(known, name))
      throw Usage(fmt::format("--{}: {} is not in {}{}", option, name,
                              tables.size() == 1 ? tables[0].name : "any of these", near_names(name, known)));
  for (PresetTable& table : tables)
    std::erase_if(table.presets, [&](const Preset& p) {
      const auto names = names_of(p);
      return std::none_of(names.begin(), names.end(), [&](const std::string& name) { return has(wanted, name); });
    });
}

/// The name for the results of part of a table, so that they do not overwrite those of the whole.
std::string part_name(const std::string& table, const Choice& choice) {
  std::string name = table;
  for (const std::string& part : {choice.cases, choice.cells})
    if (!part.empty()) name += "-" + fmt::format("{}", fmt::join(split_list(part), "+"));
  return name;
}

/// The name of some rows: their labels, or if these are too many for the name of a file, their number and mark.
std::string rows_name(const std::vector<Preset>& rows) {
  constexpr std::size_t most = 100;  // letters
  std::vector<std::string> labels;
  for (const Preset& p : rows) labels.push_back(p.label);
  const std::string name = fmt::format("{}", fmt::join(labels, "+"));
  return name.size() <= most ? name : fmt::format("{}-rows-{}", rows.size(), mark_of(labels));
}

}  // namespace

std::vector<Chosen> choose(const std::vector<PresetTable>& tables, const Choice& choice) {
  if (choice.names.empty() != choice.all)
    throw Usage(fmt::format("NAMES of papers, tables or figures expected, or --all{}. See --list.",
                            choice.all ? ", not both" : ""));
  std::vector<std::string> known, presets;
  for (const PresetTable& table : tables) {
    if (!has(known, paper_of(table.name))) known.push_back(paper_of(table.name));
    known.push_back(table.name);
    for (const Preset& p : table.presets) presets.push_back(p.name);
  }
  std::vector<std::string> found;
  std::vector<PresetTable> parts;
  std::vector<const PresetTable*> wholes;
  for (const PresetTable& table : tables) {
    PresetTable part = table;
    bool whole = choice.all;
    for (const std::string& name : choice.names)
      if (name == table.name || name == paper_of(table.name)) found.push_back(name), whole = true;
    std::erase_if(part.presets, [&](const Preset& p) {
      const bool named = has(choice.names, p.name);
      if (named) found.push_back(p.name);
      return !whole && !named;
    });
    if (part.presets.empty()) continue;
    if (!whole && part.presets.size() == 1) part.name = part.presets[0].name;
    if (!whole && part.presets.size() > 1) part.name += "-" + rows_name(part.presets);
    parts.push_back(std::move(part));
    wholes.push_back(&table);
  }
  for (const std::string& name : choice.names)
    if (!has(found, name))
      throw Usage(fmt::format("{}: there is no such paper, table, figure or preset{}. See --list.", name,
                              near_names(name, std::ranges::count(name, '/') > 1 ? presets : known)));
  keep(parts, "cells", split_list(choice.cells), cells_of);
  keep(parts, "cases", split_list(choice.cases), cases_of);
  std::vector<Chosen> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].presets.empty()) continue;
    Chosen one{*wholes[i], {std::move(parts[i]), 1, 1, "", {}}};
    one.report.table.name = part_name(one.report.table.name, choice);
    for (const Preset& p : one.report.table.presets) one.report.rows.push_back({p, {}});
    out.push_back(std::move(one));
  }
  if (out.empty()) throw Usage("--cells, --cases: nothing of this is left");
  return out;
}

}  // namespace reel
