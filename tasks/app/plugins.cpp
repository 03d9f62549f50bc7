#include "tasks/app/plugins.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cells/plugin.h"
#include "cells/registry.h"
#include "tasks/app/options.h"

namespace reel {
namespace {

constexpr const char* variable = "REEL_PLUGINS";

}  // namespace

std::vector<std::string> plugins() {
  const char* const text = std::getenv(variable);
  std::vector<std::string> paths;
  std::string path;
  for (const char* c = text ? text : "";; ++c) {
    if (*c && *c != ':') {
      path += *c;
    } else if (!path.empty()) {
      std::string whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path));
      if (std::find(paths.begin(), paths.end(), whole) == paths.end()) paths.push_back(std::move(whole));
      path.clear();
    }
    if (!*c) return paths;
  }
}

void load_plugins() {
  check_registries();
  const std::vector<std::string> paths = plugins();
  if (paths.empty()) return;
  for (const std::string& path : paths) {
    try {
      load_plugin(path);
    } catch (const Error& e) {
      throw Usage(fmt::format("{}: {}", variable, e.what()));
    }
  }
  setenv(variable, fmt::format("{}", fmt::join(paths, ":")).c_str(), 1);
}

}  // namespace reel
