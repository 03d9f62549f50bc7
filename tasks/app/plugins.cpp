#include "tasks/app/plugins.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "cells/plugin.h"
#include "cells/registry.h"
#include "tasks/app/options.h"

namespace reel {

namespace {
constexpr const char* variable = "REEL_PLUGINS";

[[noreturn]] void refuse_colon(const std::string& path) {
  throw Usage(fmt::format(
      "{}: [{}] the path of a plugin must not contain ':', which separates two. Hint: move the file", variable, path));
}
}  // namespace

void load_plugins() {
  check_registries();
  const char* const given = std::getenv(variable);
  if (std::error_code error; given && std::strchr(given, ':') && std::filesystem::is_regular_file(given, error))
    refuse_colon(given);
  std::istringstream paths(given ? given : "");
  for (std::string path; std::getline(paths, path, ':');) {
    try {
      if (!path.empty()) load_plugin(path);
    } catch (const Error& e) {
      throw Usage(fmt::format("{}: {}", variable, e.what()));
    }
  }
  for (const std::string& path : loaded_plugins())  // absolute: those of programs that this one starts
    if (path.find(':') != std::string::npos) refuse_colon(path);
  if (!loaded_plugins().empty()) setenv(variable, fmt::format("{}", fmt::join(loaded_plugins(), ":")).c_str(), 1);
}

}  // namespace reel
