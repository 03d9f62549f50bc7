// Linux control groups: what containers and batch systems limit a process by.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// The folders that may hold limits of `controller` ("cpu", "memory") for a process, from its own control group up to
/// the root. `groups` is the text of /proc/self/cgroup, with lines "0::/a/b" of version 2 and "5:cpu,cpuacct:/a/b" of
/// version 1; `mount` is where the groups are mounted. In a container a path may be that of the host, and `mount` the
/// group itself.
std::vector<std::string> group_folders(const std::string& groups, const std::string& controller,
                                       const std::string& mount = "/sys/fs/cgroup");

/// The text of a small file of the kernel's; empty when it cannot be read. By system calls, as libstdc++'s streams and
/// paths crash where malloc fails.
std::string kernel_text(const std::string& path);

}  // namespace reel
