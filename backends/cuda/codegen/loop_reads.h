// How the calls of a loop's kernel read their operands.
#pragma once
#include "backends/cuda/codegen/loop_layout.h"

namespace reel::cuda {

/// Can a call read its first operand in shared memory only?
bool reads_shared(const StepCall& call);

/// For each operand of a call: is it read at another column than the result's?
std::vector<char> moved_operands(const StepCall& call);

/// How a call reads an operand; `moved`: at other columns.
ReadPath read_path(const LoopValues& loop, std::size_t call, std::size_t operand, bool moved);

}  // namespace reel::cuda
