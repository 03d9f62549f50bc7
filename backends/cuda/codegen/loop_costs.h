// What a step of a loop costs on a GPU: to choose between layouts, and between one kernel and a kernel for each call.
#pragma once
#include "backends/cuda/codegen/loop_values.h"
#include "backends/cuda/runtime/device_options.h"

namespace reel::cuda {

struct LoopLayout;
struct LoopLimits;

/// In microseconds, or per microsecond, of an H100 80GB HBM3 (docs/gpu.md): the first five as bench_loops meets them,
/// the others as bench_device prints them.
struct LoopCosts {
  double cycles = 1.15e3;  // of an SM in which it multiplies: more than half of its 1,980, as its eight warps also wait
  double elementwise = 0.2;  // a thread's element of the elementwise work, and as much again / 2 for a step of any size
  double wait = 1.1;         // a barrier between blocks
  double fetch = 0.3;        // until the first bytes come from the L2 cache
  double fetched = 8.5e6;    // bytes that all blocks together get from there, which others have just written
  double launch = 1.2;       // a kernel in a captured graph
  double product = 4.7;      // the smallest product of cuBLAS there
  double flops = 4.1e7;      // of a large one, f32 in full precision
  double reduction = 0.3;    // sums along rows, and the barriers around them: not measured yet
};
/// The operations of a large product of cuBLAS per microsecond, at this precision.
double product_flops(Precision precision);

/// A step of the loop as one kernel.
double kernel_step(const LoopValues& loop, const LoopLayout& layout, const LoopLimits& limits);
/// A step of the loop as one kernel for each call.
double call_step(const LoopValues& loop, const LoopLimits& limits);

}  // namespace reel::cuda
