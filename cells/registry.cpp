#include "cells/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "cells/cell.h"
#include "cells/nearest_name.h"
#include "engine/core/parse.h"

const int REEL_VERSION_SYMBOL = 0;

namespace reel {

namespace {

std::deque<CellType>& cell_types() {
  static std::deque<CellType> types;
  return types;
}

/// What may be an option: --CELL.SETTING.
bool is_option_name(const std::string& name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), fits);
}

/// Throws Error for a cell whose settings no program could have as options.
void check_declaration(const CellType& type) {
  const auto refuse = [&](const std::string& why) {
    throw Error("cell", fmt::format("\"{}\" ({}): {}", type.name, type.file, why));
  };
  if (!is_option_name(type.name)) refuse("a name has letters, digits, _ and -, and begins with a letter");
  std::map<std::string, std::string> defaults;
  for (const Setting& s : type.settings) {
    if (!is_option_name(s.name))
      refuse(fmt::format("the setting \"{}\": a name has letters, digits, _ and -, and begins with a letter", s.name));
    if (!defaults.emplace(s.name, s.fallback).second) refuse(fmt::format("two settings are called \"{}\"", s.name));
    const auto number = s.kind == Setting::Kind::real ? parse<double>(s.fallback) : std::nullopt;
    if (number && !std::isfinite(*number))
      refuse(fmt::format("the default of the setting \"{}\" is {}, a finite number is needed", s.name, s.fallback));
  }
  try {
    Settings(type.name, type.settings, defaults);
  } catch (const SettingError& e) {
    refuse(fmt::format("the default of a setting, {}", e.what()));
  }
  for (const Setting& s : type.settings) {
    if (s.only_if.empty()) continue;
    const std::size_t end = s.only_if.find_first_of("!="), equals = s.only_if.find('=');
    const std::string other = s.only_if.substr(0, end),
                      what = fmt::format("the setting \"{}\" is read only if \"{}\": ", s.name, s.only_if);
    if (!defaults.contains(other) || equals == s.only_if.npos || equals > end + 1)
      refuse(what + "another setting and its value are needed, as in style=tunable or chrono!=0");
    try {
      Settings(type.name, type.settings, {{other, s.only_if.substr(equals + 1)}});
    } catch (const SettingError& e) {
      refuse(what + e.what());
    }
  }
}

/// Throws Error for states that no loop can carry, or that pictures and files could not tell apart.
void check_states(const std::string& name, const Cell& cell) {
  if (cell.outputs() < 1) throw Error(name, fmt::format("outputs() is {}, 1 or more is needed", cell.outputs()));
  if (!cell.recurrent()) return;
  const std::vector<State> states = cell.states();
  if (states.empty())
    throw Error(name, "states() is empty. Hint: a cell with a step has a state; one without says recurrent() = false");
  std::set<std::string> names;
  for (const State& s : states) {
    if (s.name.find('/') != std::string::npos)
      throw Error(
          name, fmt::format("a state is called \"{}\": the name of a state is part of a file's and has no /", s.name));
    if (!names.insert(s.name).second) throw Error(name, fmt::format("two states are called \"{}\"", s.name));
    if (s.width < 1)
      throw Error(name, fmt::format("the state {} has {} values, 1 or more are needed", s.name, s.width));
  }
}

}  // namespace

void check_registries() {
  std::map<std::string, std::string> files;  // of the cells by name
  for (const CellType& type : cell_types()) {
    check_declaration(type);
    const auto [first, is_new] = files.emplace(type.name, type.file);
    if (!is_new)
      throw Error("cell", fmt::format("two cells are called \"{}\", one in {} and one in {}. Hint: rename one of them, "
                                      "or link its file once",
                                      type.name, first->second, type.file));
  }
  std::set<std::string> ops, devices;
  for (const Op* op : op_registry()) {
    if (!ops.insert(op->traits.name).second)
      throw Error("op",
                  fmt::format("two ops are called \"{}\". Hint: rename yours in its Traits, or link its file once",
                              op->traits.name));
  }
  for (const std::string& name : backend_names()) {
    if (!devices.insert(name).second)
      throw Error("device", fmt::format("two kinds of device are called \"{}\". Hint: rename yours in its call of "
                                        "register_backend, or link its file once",
                                        name));
  }
}

bool CellType::built_in() const { return file.starts_with("cells/") && file.find('/', 6) == std::string::npos; }

bool register_cell(CellType type, const char* file, const int& /*version*/) {
  type.file = file;
  type.make = [name = type.name, make = std::move(type.make)](auto&&... arguments) {
    if (!make) throw Error(name, "REEL_CELL has no function that makes the cell");
    std::unique_ptr<Cell> cell = make(std::forward<decltype(arguments)>(arguments)...);
    if (!cell) throw Error(name, "REEL_CELL's function returned no cell");
    check_states(name, *cell);
    cell->name_ = name;
    return cell;
  };
  cell_types().push_back(std::move(type));
  return true;
}

std::deque<CellType>& cell_registry() {
  check_registries();
  return cell_types();
}

std::vector<std::string> cell_names() {
  std::vector<std::string> names;
  for (const CellType& type : cell_registry()) names.push_back(type.name);
  return names;
}

const CellType* find_cell(const std::string& name) {
  const std::deque<CellType>& types = cell_registry();
  const auto found = std::ranges::find(types, name, &CellType::name);
  return found == types.end() ? nullptr : &*found;
}

const CellType& cell_type(const std::string& name) {
  if (const CellType* type = find_cell(name)) return *type;
  const std::vector<std::string> names = cell_names();
  const std::string nearest = nearest_name(name, names);
  throw SettingError("cell", fmt::format("there is no cell \"{}\"; known are {}", name, fmt::join(names, ", ")),
                     {nearest.empty() ? "" : "cell", nearest});
}

}  // namespace reel
