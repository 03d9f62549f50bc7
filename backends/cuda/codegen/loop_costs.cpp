#include "backends/cuda/codegen/loop_costs.h"

#include <algorithm>

#include "backends/cuda/codegen/loop_layout.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;

/// The GPU's part that these limits leave, of the one that the costs are of.
double share_of_gpu(const LoopLimits& limits) { return limits.processors / 132.0; }

}  // namespace

double product_flops(Precision precision) {
  return precision == Precision::tf32 ? 3.0e8 : precision == Precision::bf16 ? 6.0e8 : LoopCosts().flops;
}

double kernel_step(const LoopValues& loop, const LoopLayout& layout, const LoopLimits& limits) {
  const LoopCosts& costs = limits.costs;
  double cycles = 0, bytes = 0, fetches = 0, reductions = 0;
  std::int64_t lanes = 1;
  const std::int64_t times = (layout.rows + layout.chunk - 1) / layout.chunk;
  for (const LoopStage& stage : layout.stages) {
    if (!stage.is_products()) {
      const StepCall& call = loop.calls[static_cast<std::size_t>(stage.call)];
      lanes = std::max(lanes, layout.lanes(call.columns()));
      reductions += call.crosses();
      continue;
    }
    fetches += layout.slices > 1;
    for (const ProductGroup& g : stage.groups) {
      const StepCall& call = loop.calls[static_cast<std::size_t>(g.calls[0])];
      cycles += g.cycles * static_cast<double>(times * layout.chunk);
      bytes += static_cast<double>(g.factors * layout.rows * call.sums) *
               static_cast<double>(size_of(call.operands[0].dtype));
    }
  }
  const double moved = layout.slices > 1 ? bytes * static_cast<double>(layout.blocks()) : 0;
  return costs.elementwise * (0.5 + static_cast<double>(lanes)) + costs.reduction * reductions + cycles / costs.cycles +
         costs.wait * layout.barriers + costs.fetch * fetches + moved / (costs.fetched * share_of_gpu(limits));
}

double call_step(const LoopValues& loop, const LoopLimits& limits) {
  const LoopCosts& costs = limits.costs;
  double time = 0;
  for (const StepCall& call : loop.calls) {
    if (call.kind != Kind::product) {
      time += costs.launch;
      continue;
    }
    const bool wide = call.operands[0].dtype == DType::f64;
    const double flops = 2 * static_cast<double>(call.rows() * call.columns() * call.sums),
                 rate = wide ? LoopCosts().flops / 2 : costs.flops;
    time += costs.product + flops / (rate * share_of_gpu(limits));
  }
  return time;
}

}  // namespace reel::cuda
