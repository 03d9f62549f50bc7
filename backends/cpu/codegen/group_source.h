// A fusion group as C++ text for the CPU: values stay in registers, memory is read for arguments and written for
// results that are used outside the group. Every call is the functor that the interpreter calls, on the same SIMD
// batches, so that both give the same bits.
#pragma once
#include <string>

#include "engine/device/kernels.h"

namespace reel::cpu {

/// The text of a function, behind its name, for all groups of the same calls, strides and number of columns; empty for
/// a group that it cannot compute.
std::string group_source(const FusedArgs& args);

}  // namespace reel::cpu
