// The source of one kernel for all steps of a loop, and its memory arguments. Plain functions, tested without a GPU.
#pragma once
#include "backends/cuda/codegen/kernel_source.h"
#include "backends/cuda/codegen/loop_layout.h"

namespace reel::cuda {

/// A memory argument, which the kernel's source refers to by number.
struct LoopMemory {
  Operand walk = {};
  std::int64_t scratch = -1;  // if >= 0: its byte offset in the scratch memory
  bool operator==(const LoopMemory&) const = default;
};
struct LoopKernel {
  KernelSource source;
  std::vector<LoopMemory> memory;
};
/// `name` is the function's name. `aligned`: by buffer, does it start at a multiple of 16 bytes?
LoopKernel loop_kernel(const LoopValues& loop, const LoopLayout& layout, const std::vector<char>& aligned,
                       const std::string& name = "loop");
std::vector<char> aligned_buffers(std::span<std::byte* const> buffers);

/// The kernel's one argument: the number of steps, the groups' barrier counters (zeroed, counter_bytes apart), memory
/// addresses, and functor parameters. `buffers` are those of the loop.
std::vector<std::uint64_t> loop_arguments(const LoopValues& loop, const LoopKernel& kernel, std::int64_t steps,
                                          std::span<std::byte* const> buffers, std::byte* counters, std::byte* scratch);
/// Its bytes.
std::size_t argument_bytes(const LoopValues& loop, const LoopKernel& kernel);
constexpr std::int64_t counter_bytes = 128;

}  // namespace reel::cuda
