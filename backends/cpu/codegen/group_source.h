// A fusion group as C++ text for the CPU: values stay in registers, memory is read for arguments and written for
// results that are used outside the group. Every call is the functor that the interpreter calls, on the same SIMD
// batches, so that both give the same bits.
#pragma once
#include <functional>
#include <string>

#include "engine/device/kernels.h"

namespace reel::cpu {

/// The text of a function, behind its name, for all groups of the same calls, strides and number of columns; empty for
/// a group that it cannot compute.
std::string group_source(const FusedArgs& args);

/// An expression for the address of row r of an operand of a group.
using RowAddress = std::function<std::string(int operand)>;
/// The calls of a group on row r, as a part of a larger function that declares `columns`, and f0, f1, ... for the
/// group's functors. Results are also written to where `saved` says, past the caches; empty: nowhere. The text is empty
/// for a group that it cannot compute.
std::string row_source(const FusedArgs& args, RowAddress address, RowAddress saved);
/// Declares a group's functors as name0, name1, ...; `group` is an expression for its FusedArgs.
std::string functor_source(const FusedArgs& args, const std::string& name, const std::string& group);

}  // namespace reel::cpu
