// What a piece of code writes to stderr.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "tasks/io/files.h"
#include "tests/support/temp_dir.h"

namespace reel::test {

/// What is on stderr while f runs.
inline std::string stderr_of(const std::function<void()>& f) {
  const TempDir dir;
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  FILE* file = std::fopen((dir / "stderr").c_str(), "w");
  dup2(fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::fclose(file);
  return read_file(dir / "stderr");
}

}  // namespace reel::test
