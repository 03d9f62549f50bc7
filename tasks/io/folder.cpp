// By readdir: libstdc++'s directory_iterator allocates in a function that must not throw, so that too little memory
// would abort the program.
#include "tasks/io/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "engine/core/error.h"

namespace reel {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  const auto fail = [&] { throw Error(folder.string(), fmt::format("cannot be read: {}", std::strerror(errno))); };
  std::vector<fs::path> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir && errno != ENOENT) fail();
  while (dir) {
    errno = 0;
    const dirent* const entry = readdir(dir.get());
    if (!entry && errno != 0) fail();
    if (!entry) break;
    if (const std::string_view name = entry->d_name; name != "." && name != "..") out.push_back(folder / name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace reel
