// A loop that has run, and how: what Cuda::watch_loops tells.
#pragma once
#include "backends/cuda/codegen/generated_kernels.h"
#include "backends/cuda/codegen/loop_layout.h"

namespace reel::cuda {

struct LoopRun {
  const LoopValues* values;  // null: no kernel can have it
  const LoopLayout* layout;  // of one kernel; null: it ran step by step
  std::int64_t steps;
  double microseconds;  // with the launch
  KernelResources resources;
};

}  // namespace reel::cuda
