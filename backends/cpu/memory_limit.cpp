#include "backends/cpu/memory_limit.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <vector>

#include "backends/cpu/threads/control_groups.h"
#include "engine/core/error.h"
#include "engine/core/parse.h"

// OpenBLAS exports these three symbols but declares them in no header; other BLAS libraries lack them.
extern "C" {
// Overrides OpenBLAS's own function, which starts a thread for each core when the library is loaded, before main() can
// tell it not to. Each thread maps 128 MiB, and retries forever if that is refused.
int blas_thread_init() { return 0; }
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace reel::cpu {

namespace {

std::optional<std::size_t> resource_limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

}  // namespace

std::optional<std::size_t> group_limit(const std::string& groups, const std::string& mount) {
  std::optional<std::size_t> least;
  for (const std::string& folder : group_folders(groups, "memory", mount)) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {  // of version 2 and 1; "max" is no number
      const std::string text = kernel_text(folder + file);
      if (const auto bytes = parse<std::size_t>(std::string_view(text).substr(0, text.find('\n'))))
        least = std::min(least.value_or(*bytes), *bytes);
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
    if (const auto bytes = group_limit(kernel_text("/proc/self/cgroup")))
      take(*bytes + info.totalswap * info.mem_unit, "its control group is allowed");
  }
  take(resource_limit(RLIMIT_AS), "ulimit -v allows");
  take(resource_limit(RLIMIT_DATA), "ulimit -d allows");
  return least;
}

int reserve_for_blas(int threads, int& reserved) {
  constexpr std::size_t buffer = std::size_t{129} << 20;  // OpenBLAS uses 128 MiB per thread, plus a little
  if (!blas_memory_alloc || !blas_memory_free || (!resource_limit(RLIMIT_AS) && !resource_limit(RLIMIT_DATA)))
    return threads;
  std::vector<void*> taken;  // all taken at once, to get distinct ones; they stay mapped when released
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
  reserved = std::max(reserved, static_cast<int>(taken.size()));
  return static_cast<int>(taken.size());
}

}  // namespace reel::cpu
