#include "tasks/io/folder.h"

#include <algorithm>

#include "engine/core/error.h"

namespace reel {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) out.push_back(at->path());
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(folder.string(), "cannot be read: " + error.message());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace reel
