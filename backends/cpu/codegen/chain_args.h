// What the compiled function of a row chain takes.
#pragma once
#include "engine/device/kernels.h"

namespace reel::cpu {

struct RowChainArgs {
  std::int64_t rows;
  std::byte* const* operands;  // each at its place in this step, then each state before the step and after it
  const FusedArgs* groups;     // of the chain's fusion groups, for their functors
};
using RowChainFunction = void (*)(const RowChainArgs&);

}  // namespace reel::cpu
