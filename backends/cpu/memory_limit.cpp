#include "backends/cpu/memory_limit.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "engine/error.h"
#include "engine/parse.h"

// OpenBLAS exports these three, and declares them in no header; another BLAS has none.
extern "C" {
// Its own would start a thread for each core when the library is loaded, before main() can say that none is needed, and
// each maps 128 MiB, asking for ever where it may not.
int blas_thread_init() { return 0; }
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace reel::cpu {

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The number in a file, if there is one: "max" is none.
std::optional<std::size_t> number_in(const std::string& path) {
  const std::string text = text_of(path);
  return parse<std::size_t>(std::string_view(text).substr(0, text.find('\n')));
}

std::optional<std::size_t> resource_limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

}  // namespace

std::optional<std::size_t> group_limit(const std::string& groups, const std::string& root) {
  std::optional<std::size_t> least;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" of version 2, "5:cpu,memory:/a/b" of version 1
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = kinds == ",,";
    if (!unified && kinds.find(",memory,") == std::string::npos) continue;
    const std::string top = unified ? root : root + "/memory";
    const std::string file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      if (const auto bytes = number_in(top + group + file)) least = std::min(least.value_or(*bytes), *bytes);
      if (group.find('/') == std::string::npos) break;
    }
  }
  return least;
}

MemoryLimit memory_limit() {
  struct sysinfo info {};
  MemoryLimit least;
  const auto take = [&](std::optional<std::size_t> bytes, const char* words) {
    if (bytes && *bytes < least.bytes)
      least = {*bytes, fmt::format("{} {}", words, memory_text(static_cast<double>(*bytes)))};
  };
  if (sysinfo(&info) == 0) {
    take((info.totalram + info.totalswap) * info.mem_unit, "this machine has");
    if (const auto bytes = group_limit(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"))
      take(*bytes + info.totalswap * info.mem_unit, "its control group is allowed");
  }
  take(resource_limit(RLIMIT_AS), "ulimit -v allows");
  take(resource_limit(RLIMIT_DATA), "ulimit -d allows");
  return least;
}

int reserve_for_blas(int threads, int reserved) {
  constexpr std::size_t buffer = std::size_t{129} << 20;  // OpenBLAS has 128 MiB a thread, and a little beside them
  if (!blas_memory_alloc || !blas_memory_free || (!resource_limit(RLIMIT_AS) && !resource_limit(RLIMIT_DATA)))
    return threads;
  std::vector<void*> taken;  // all at once, so that each is another one; they stay mapped when they are given back
  taken.reserve(static_cast<std::size_t>(threads));
  while (std::ssize(taken) < threads) {
    if (std::ssize(taken) >= reserved) {
      void* const room = mmap(nullptr, buffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (room == MAP_FAILED) break;
      munmap(room, buffer);
    }
    taken.push_back(blas_memory_alloc(0));
  }
  std::for_each(taken.begin(), taken.end(), blas_memory_free);
  return static_cast<int>(taken.size());
}

}  // namespace reel::cpu
