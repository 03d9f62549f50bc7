// A folder for a while.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace reel {

/// A new folder PREFIX-..., which the destructor removes with its contents.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& prefix) : path_(prefix + "-XXXXXX"), made_(mkdtemp(path_.data())) {}
  ~TemporaryFolder() {
    std::error_code error;
    if (made_) std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// False: it could not be made, and errno says why.
  explicit operator bool() const { return made_; }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return std::filesystem::path(path_) / name; }

 private:
  std::string path_;
  bool made_;
};

}  // namespace reel
