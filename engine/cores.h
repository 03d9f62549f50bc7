// How many processors this process may use.
#pragma once
#include <string>

namespace reel {

/// How many threads can run at the same time: the processors that the process is allowed (taskset, cpusets), or fewer
/// where a control group limits its time, as containers do; at least 1.
int available_cores();

/// How many processors the control groups of a process let it keep busy, rounded up; 0: no limit. `groups` is the text
/// of /proc/self/cgroup; the groups' files, of version 1 or 2, lie below `mount`.
int cores_by_quota(const std::string& groups, const std::string& mount = "/sys/fs/cgroup");

}  // namespace reel
