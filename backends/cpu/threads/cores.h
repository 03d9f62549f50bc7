// The number of processors that this process may use.
#pragma once
#include <string>

namespace reel {

/// How many threads can run at the same time: the processors in the affinity mask (taskset, cpusets), or fewer where a
/// control group limits CPU time, as in containers; at least 1.
int available_cores();

/// The affinity mask as text: for each processor, from the first, '1' if this process may use it, or '0'.
std::string allowed_cores();

/// The CPU quota of this process's control groups in processors, rounded up; 0: no limit.
int cores_by_quota();

/// The CPU quota of a process's control groups in processors, rounded up; 0: no limit. `groups` is the text of
/// /proc/self/cgroup; the groups' files, of version 1 or 2, are below `mount`.
int cores_by_quota(const std::string& groups, const std::string& mount = "/sys/fs/cgroup");

}  // namespace reel
