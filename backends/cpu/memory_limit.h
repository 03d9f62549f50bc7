// How much memory a process on this machine can have. A tensor beyond that is refused; the Linux kernel would grant the
// allocation and kill the process when it touches the memory.
#pragma once
#include <optional>
#include <string>

#include "engine/device/backend.h"

namespace reel::cpu {

/// The least of the machine's memory plus swap, its control group's limit, and `ulimit -v` and `-d`.
MemoryLimit memory_limit();

/// The least limit of a process's control group and its ancestors. `groups` is the text of /proc/self/cgroup; `root` is
/// the directory of their files, /sys/fs/cgroup. Empty if no group has a limit.
std::optional<std::size_t> group_limit(const std::string& groups, const std::string& mount = "/sys/fs/cgroup");

/// Has OpenBLAS map its work buffers for `threads` threads, of which `reserved` are mapped already, and returns the
/// number of threads that products can run on. OpenBLAS retries forever when mmap fails, so under an address space
/// limit the buffers are requested here, before the first product.
int reserve_for_blas(int threads, int& reserved);

}  // namespace reel::cpu
