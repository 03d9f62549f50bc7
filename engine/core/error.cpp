#include "engine/core/error.h"

#include <cstdio>
#include <map>
#include <mutex>

namespace reel {

namespace {
constexpr int shown = 5;

struct Counts {
  std::mutex mutex;
  std::map<std::string, int> of;
};
Counts& counts() {
  static Counts counts;
  return counts;
}
}  // namespace

void warn(const std::string& subject, const std::string& text) {
  const std::lock_guard lock(counts().mutex);
  const int n = ++counts().of[subject];
  if (n > shown) return;
  const char* end = n == shown ? " (further warnings are not shown)" : "";
  // Unlike fmt::print this does not throw when stderr is not writable, which must not end a run.
  std::fputs(fmt::format("[{}] warning: {}{}\n", subject, text, end).c_str(), stderr);
}

int warnings(const std::string& subject) {
  const std::lock_guard lock(counts().mutex);
  return counts().of[subject];
}

}  // namespace reel
