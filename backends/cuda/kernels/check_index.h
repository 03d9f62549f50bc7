// The rule for the indices of lookups, in kernels.
#pragma once
#include <cstdint>

#include "backends/cuda/runtime/faults.h"

namespace reel::cuda {

/// Is index[place] in range? Records a fault if not.
__device__ inline bool good(const std::int32_t* index, std::int64_t place, std::int64_t limit, FaultSlot* fault) {
  const std::int32_t i = index[place];
  if (i >= 0 && i < limit) return true;
  atomicMin(fault, static_cast<FaultSlot>(place) << 32 | static_cast<std::uint32_t>(i));
  return false;
}

}  // namespace reel::cuda
