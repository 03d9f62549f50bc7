#include "tasks/app/plugins.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <sstream>

#include "cells/plugin.h"
#include "cells/registry.h"
#include "tasks/app/options.h"

namespace reel {

void load_plugins() {
  constexpr const char* variable = "REEL_PLUGINS";
  check_registries();
  const char* const given = std::getenv(variable);
  std::istringstream paths(given ? given : "");
  for (std::string path; std::getline(paths, path, ':');) {
    try {
      if (!path.empty()) load_plugin(path);
    } catch (const Error& e) {
      throw Usage(fmt::format("{}: {}", variable, e.what()));
    }
  }
  if (!loaded_plugins().empty()) setenv(variable, fmt::format("{}", fmt::join(loaded_plugins(), ":")).c_str(), 1);
}

}  // namespace reel
