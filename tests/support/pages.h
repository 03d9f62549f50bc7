// The commands of a page of the documentation, run as a user types them.
#pragma once
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

namespace reel::test {

/// The blocks of commands of a page.
inline std::vector<std::string> commands_of(const std::string& path) {
  std::istringstream page(read_file(path));
  std::vector<std::string> blocks;
  bool within = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```sh") {
      blocks.emplace_back();
      within = true;
    } else if (line == "```") {
      within = false;
    } else if (within) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

/// Gives a folder build/bin and scripts, as the source tree has them.
inline void make_tree(const TempDir& dir) {
  namespace fs = std::filesystem;  // both folders are relative paths in a build for a bundle
  fs::create_directory(dir / "build");
  fs::create_directory_symlink(fs::canonical(REEL_BIN_DIR), dir / "build/bin");
  fs::create_directory_symlink(fs::canonical(REEL_SOURCE_DIR "/scripts"), dir / "scripts");
}

/// Runs a block in the folder, where each command must succeed; returns what it prints.
inline std::string run_block(const TempDir& dir, const std::string& block) {
  CAPTURE(block);
  write_atomically(dir / "block.sh", block);
  const std::string command = "cd " + dir.path + " && bash -euo pipefail block.sh >out 2>err";
  const int code = std::system(command.c_str());
  const std::string output = read_file(dir / "out");
  CAPTURE(output);
  CAPTURE(read_file(dir / "err"));
  REQUIRE(code == 0);
  return output;
}

}  // namespace reel::test
