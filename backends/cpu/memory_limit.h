// How much memory a process on this machine can have: a tensor beyond that is refused, where the kernel would promise
// it and kill the process on the way.
#pragma once
#include <optional>
#include <string>

#include "engine/backend.h"

namespace reel::cpu {

/// The least of what the machine has (memory and swap), its control group allows, and `ulimit -v` and `-d` allow.
MemoryLimit memory_limit();

/// The least limit of a process's control group and those around it; `groups` is the text of /proc/self/cgroup.
/// Nothing where no group has a limit.
std::optional<std::size_t> group_limit(const std::string& groups, const std::string& mount = "/sys/fs/cgroup");

/// Lets OpenBLAS map what its products on so many threads work in, of which it has that of `reserved` threads already,
/// and returns on how many they can run. It would ask for ever for memory that it is refused, so under an address space
/// limit it is asked for here, before the first product.
int reserve_for_blas(int threads, int reserved);

}  // namespace reel::cpu
