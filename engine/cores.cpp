#include "engine/cores.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>

namespace reel {

namespace {

namespace fs = std::filesystem;

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// The numbers at the start of a small file. By stdio, which does without a buffer where there is no memory for one;
/// libstdc++'s streams crash then.
template <class... T>
bool read_numbers(const fs::path& path, const char* format, T*... numbers) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  return file && std::fscanf(file.get(), format, numbers...) == static_cast<int>(sizeof...(numbers));
}

/// The time that a group gets over the period it gets it in.
double quota(const fs::path& group) {
  double time = 0, period = 0;
  const bool known = read_numbers(group / "cpu.max", "%lf %lf", &time, &period) ||  // version 2; "max" is no number
                     (read_numbers(group / "cpu.cfs_quota_us", "%lf", &time) &&     // version 1
                      read_numbers(group / "cpu.cfs_period_us", "%lf", &period));
  return known && time > 0 && period > 0 ? time / period : no_limit;  // -1 is no limit
}

/// The least of a group and those above it. Inside a container the path may be that of the host, and `mount` the group.
double least_quota(const fs::path& mount, const std::string& path) {
  fs::path group = fs::path(path).relative_path();
  double least = quota(mount / group);
  while (!group.empty()) {
    group = group.parent_path();
    least = std::min(least, quota(mount / group));
  }
  return least;
}

bool names_cpu(const std::string& controllers) { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }

/// How many processors the scheduler may put this process on.
int allowed_processors() {
  std::array<cpu_set_t, 16> sets{};  // one alone is for 1024 processors
  if (sched_getaffinity(0, sizeof sets, sets.data()) == 0) return CPU_COUNT_S(sizeof sets, sets.data());
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int cores_by_quota(const std::string& groups, const std::string& mount) {
  double least = no_limit;
  std::istringstream lines(groups);  // "NUMBER:CONTROLLERS:PATH"
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* folder : {"", "unified"}) least = std::min(least, least_quota(fs::path(mount) / folder, path));
    } else if (names_cpu(controllers)) {
      for (const std::string& folder : {controllers, std::string("cpu")})
        least = std::min(least, least_quota(fs::path(mount) / folder, path));
    }
  }
  return std::isfinite(least) ? static_cast<int>(std::min(std::ceil(least), 1e6)) : 0;
}

int available_cores() {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), {}};
  const int allowed = std::max(allowed_processors(), 1), limit = cores_by_quota(groups);
  return limit > 0 ? std::min(allowed, limit) : allowed;
}

}  // namespace reel
