#include "cells/plugin.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include "cells/cell.h"
#include "cells/registry.h"

namespace reel {
namespace {

/// Throws Error for what dlopen() would crash on: it maps segments into memory and does not look whether the file has
/// all of them.
void require_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path, "cannot be read");
  const std::uintmax_t size = std::filesystem::file_size(path);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    throw Error(path, "is not a shared library");
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (!file || segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
      throw Error(path, fmt::format("is truncated: it has {} bytes", size));
  }
}

/// True if a library that was loaded from this path is no longer the file there.
bool replaced(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path + " (deleted)")) return true;
  }
  return false;
}

/// What the program was loading when it ended with an exception that nothing can catch.
std::string& being_loaded() {
  static std::string path;
  return path;
}

/// Says whose initialiser threw, and what.
[[noreturn]] void end_of_initialiser() {
  std::string what = "an exception";
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  std::fputs(fmt::format("[{}] an initial value of a variable throws: {}\n", being_loaded(), what).c_str(), stderr);
  std::abort();
}

/// dlopen(), which runs the initialisers of the library. The floating-point environment stays: those of -ffast-math
/// make denormals zero.
void* open_library(const std::string& path) {
  std::fenv_t environment;
  std::fegetenv(&environment);
  being_loaded() = path;
  const std::terminate_handler before = std::set_terminate(end_of_initialiser);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::set_terminate(before);
  std::fesetenv(&environment);
  if (library) return library;
  const char* const text = dlerror();
  const std::string why = text ? text : "";
  if (why.find("undefined symbol: reel_version_") != why.npos)
    throw Error(path, fmt::format("was compiled with other headers than those of this Reel, {}. Hint: compile it again",
                                  REEL_VERSION));
  const bool of_reel = why.find("undefined symbol: _Z") != why.npos && why.find("N4reel") != why.npos;
  throw Error(path, fmt::format("cannot be loaded: {}{}", why,
                                of_reel ? ". Hint: a program that Reel is linked into exports its symbols to plugins: "
                                          "ENABLE_EXPORTS in CMake, otherwise -rdynamic"
                                        : ""));
}

std::vector<std::string>& plugins() {
  static std::vector<std::string> paths;
  return paths;
}

}  // namespace

const std::vector<std::string>& loaded_plugins() { return plugins(); }

void load_plugin(const std::string& given) {
  std::error_code error;
  // A name without '/' would be looked for in the system's folders.
  const std::string path = std::filesystem::weakly_canonical(given, error);
  // Whatever else has a name, such as a pipe, could keep dlopen() waiting.
  if (!std::filesystem::exists(path, error)) throw Error(given, "there is no such file");
  if (!std::filesystem::is_regular_file(path, error))
    throw Error(given, "a shared library is expected, this is no file");
  if (replaced(path)) throw Error(path, "has changed since it was loaded. Hint: a new process loads it as it is now");
  require_whole(path);
  if (std::find(plugins().begin(), plugins().end(), path) != plugins().end()) return;
  std::deque<CellType>& cells = cell_registry();
  const std::size_t before = cells.size(), ops = op_registry().size(), devices = backend_names().size();
  void* const library = open_library(path);  // stays open, as its cells do
  try {
    if (cells.size() == before) throw Error("cell", "there is no new one. Hint: REEL_CELL registers it");
    for (std::size_t i = before; i < cells.size(); ++i) {
      if (cells[i].built_in() && cells[i].name == cells[0].name)
        throw Error("cell",
                    "Reel's own cells are in it. Hint: a plugin does not link Reel's libraries (reel_add_plugin)");
    }
    check_registries();
  } catch (const Error& e) {
    cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(before), cells.end());
    op_registry().resize(ops);
    if (backend_names().size() == devices) dlclose(library);
    throw Error(path, e.what());
  }
  plugins().push_back(path);
}

}  // namespace reel
