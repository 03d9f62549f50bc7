// A row chain as C++ text.
#pragma once
#include "backends/cpu/codegen/row_calls.h"
#include "backends/cpu/codegen/row_chains.h"

namespace reel::cpu {

/// The text of the function of these calls; adds its operands and states to the chain. Empty: a group cannot be
/// compiled.
std::string chain_source(const LoweredLoop& loop, RowChain& chain, const std::vector<RowCall>& calls);

}  // namespace reel::cpu
