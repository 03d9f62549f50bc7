// One kernel for all steps of a loop: its text, and where its memory lies. Plain functions, tested without a GPU.
#pragma once
#include "backends/cuda/kernel_source.h"
#include "backends/cuda/loop_layout.h"

namespace reel::cuda {

/// Memory that a kernel's text numbers.
struct LoopMemory {
  LoopWalk walk;
  std::int64_t scratch = -1;  // not below 0: it lies in the scratch memory, from here on
  bool operator==(const LoopMemory&) const = default;
};
struct LoopKernel {
  KernelSource source;
  std::vector<LoopMemory> memory;
};
/// `name` is that of the function.
LoopKernel loop_kernel(const LoopValues& loop, const LoopLayout& layout, const std::string& name = "run");

/// The kernel's one argument: how many steps, counters of the groups' waits (one each 128 bytes, 0), memory, numbers.
std::vector<std::uint64_t> loop_arguments(const LoopValues& loop, const LoopKernel& kernel, std::int64_t steps,
                                          std::byte* counters, std::byte* scratch);
constexpr std::int64_t counter_bytes = 128;

}  // namespace reel::cuda
