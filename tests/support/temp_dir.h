// A folder for a test's files.
#pragma once
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace reel::test {

/// A new folder that is gone, with all in it, at the end of the test.
struct TempDir {
  TempDir() {
    char name[] = "/tmp/reel_test_XXXXXX";
    path = mkdtemp(name);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  /// The path of a file in it.
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

inline std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace reel::test
