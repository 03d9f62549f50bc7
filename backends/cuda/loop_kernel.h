// One kernel for all steps of a loop whose step is a fused run: the text is the run's (fused_source.cpp) with a loop
// around it. A block has a row for all time, for rolls move elements along their row: a column for each thread, or up
// to four. Where nothing is rolled, a thread has an element.
#pragma once
#include "backends/cuda/fused_source.h"

namespace reel::cuda {

struct LoopLayout {
  FusedLayout run;
  unsigned blocks, threads;
};
/// False: no kernel has such a loop.
bool lay_out_loop(const FusedLoopArgs& args, LoopLayout& layout);
/// Is the operand a state, which earlier steps have written?
bool is_carried(const FusedLoopArgs& args, std::size_t operand);

std::string loop_key(const FusedLoopArgs& args, const LoopLayout& layout);
KernelSource loop_source(const FusedLoopArgs& args, const LoopLayout& layout, const std::string& name = "run");
/// The kernel's argument: rows, columns, steps, addresses of time 0, strides in elements, numbers.
std::vector<std::uint64_t> loop_arguments(const FusedLoopArgs& args, const LoopLayout& layout);

}  // namespace reel::cuda
