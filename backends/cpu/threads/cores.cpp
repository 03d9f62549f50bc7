#include "backends/cpu/threads/cores.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

#include "backends/cpu/threads/control_groups.h"

namespace reel {

namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// The time that a group gets over the period it gets it in.
double quota(const std::string& group) {
  double time = 0, period = 0;
  const bool version_2 = std::sscanf(kernel_text(group + "/cpu.max").c_str(), "%lf %lf", &time, &period) == 2;
  const bool known = version_2 ||  // "max" is no number
                     (std::sscanf(kernel_text(group + "/cpu.cfs_quota_us").c_str(), "%lf", &time) == 1 &&
                      std::sscanf(kernel_text(group + "/cpu.cfs_period_us").c_str(), "%lf", &period) == 1);
  return known && time > 0 && period > 0 ? time / period : no_limit;  // -1 is no limit
}

}  // namespace

std::string allowed_cores() {
  std::array<cpu_set_t, 16> sets{};  // one holds only 1024 processors
  if (sched_getaffinity(0, sizeof sets, sets.data()) != 0) return std::string(std::thread::hardware_concurrency(), '1');
  std::string cores;
  for (std::size_t i = 0; i < 8 * sizeof sets; ++i) cores += CPU_ISSET_S(i, sizeof sets, sets.data()) ? '1' : '0';
  cores.resize(cores.rfind('1') + 1);
  return cores;
}

int cores_by_quota(const std::string& groups, const std::string& mount) {
  double least = no_limit;
  for (const std::string& folder : group_folders(groups, "cpu", mount)) least = std::min(least, quota(folder));
  return std::isfinite(least) ? static_cast<int>(std::min(std::ceil(least), 1e6)) : 0;
}

int cores_by_quota() { return cores_by_quota(kernel_text("/proc/self/cgroup")); }

int available_cores() {
  const std::string cores = allowed_cores();
  const int allowed = std::max(static_cast<int>(std::count(cores.begin(), cores.end(), '1')), 1),
            limit = cores_by_quota();
  return limit > 0 ? std::min(allowed, limit) : allowed;
}

}  // namespace reel
