#include "cells/registry.h"

#include <fmt/ranges.h>

#include <set>

#include "cells/cell.h"
#include "cells/nearest_name.h"

const int REEL_VERSION_SYMBOL = 0;

namespace reel {

namespace {

std::vector<CellType>& cell_types() {
  static std::vector<CellType> types;
  return types;
}

}  // namespace

void check_registries() {
  std::map<std::string, std::string> files;  // of the cells by name
  for (const CellType& type : cell_types()) {
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
  cell_types().push_back(std::move(type));
  return true;
}

std::vector<CellType>& cell_registry() {
  check_registries();
  return cell_types();
}

const CellType& cell_type(const std::string& name) {
  std::vector<std::string> names;
  for (const CellType& type : cell_registry()) {
    if (type.name == name) return type;
    names.push_back(type.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw SettingError("cell", fmt::format("there is no cell \"{}\"; known are {}", name, fmt::join(names, ", ")),
                     {nearest.empty() ? "" : "cell", nearest});
}

}  // namespace reel
