#include "backends/cpu/threads/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace reel {

std::vector<std::string> group_folders(const std::string& groups, const std::string& controller,
                                       const std::string& mount) {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& top, std::string group) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    for (;; group.resize(group.rfind('/'))) {
      folders.push_back(top + group);
      if (group.find('/') == std::string::npos) return;
    }
  };
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* folder : {"", "/unified"}) add(mount + folder, path);
    } else if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
      for (const std::string& folder : {controllers, controller}) add(mount + "/" + folder, path);
    }
  }
  return folders;
}

std::string kernel_text(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (ssize_t n; text.size() < 1 << 16 && (n = read(file, part, sizeof part)) > 0;)
    text += std::string_view(part, static_cast<std::size_t>(n));
  close(file);
  return text;
}

}  // namespace reel
