// Programs that a test needs, and that are not everywhere.
#pragma once
#include <string>

#include "tasks/io/spawn.h"
#include "tests/support/check.h"

namespace reel::test {

/// `option` is one with which the program only says something about itself.
inline bool installed(const char* program, const char* option) {
  return run_child({program, option}).problem.find("installed") == std::string::npos;
}

inline bool has_gnuplot() { return installed("gnuplot", "--version"); }

inline bool has_browser() {
  if (installed("chromium", "--version")) return true;
  MESSAGE("skipped: the page is not looked at, as there is no chromium (Debian package chromium)");
  return false;
}

}  // namespace reel::test
