#include "cells/plugin.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cells/cell.h"
#include "cells/registry.h"

namespace reel {
namespace {

/// Throws Error for what dlopen() would crash on: it maps the file into memory and does not look whether all of it is
/// there. The table of sections is the last thing in a shared library.
void require_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path, "cannot be read");
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    throw Error(path, "is no shared library");
  const std::uintmax_t end = header.e_shoff + std::uintmax_t{header.e_shnum} * header.e_shentsize;
  if (end > std::filesystem::file_size(path))
    throw Error(path, fmt::format("is not whole: {} bytes of at least {}", std::filesystem::file_size(path), end));
}

}  // namespace

void load_plugin(const std::string& path) {
  // Whatever else has a name, such as a pipe, could keep dlopen() waiting.
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw Error(path, "there is no such file");
  if (!std::filesystem::is_regular_file(path, error))
    throw Error(path, "a shared library is expected, this is no file");
  require_whole(path);
  std::vector<CellType>& cells = cell_registry();
  const std::size_t before = cells.size();
  // A name without '/' would be looked for in the system's folders. Never closed: its cells stay in the registry.
  if (!dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const char* const text = dlerror();
    const std::string why = text ? text : "";
    if (why.find("undefined symbol: reel_version_") != why.npos)
      throw Error(path,
                  fmt::format("this plugin was compiled for another version of Reel than {}. Hint: compile it again",
                              REEL_VERSION));
    throw Error(path, fmt::format("cannot be loaded: {}", why));
  }
  if (cells.size() == before) throw Error(path, "has no new cell. Hint: REEL_CELL registers one (docs/how-to/cell.md)");
  try {
    check_registries();
  } catch (const Error& e) {
    cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(before), cells.end());
    throw Error(path, e.what());
  }
}

}  // namespace reel
