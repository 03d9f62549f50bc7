// fused, fused_loop: a run of elementwise calls as one kernel, once or for all steps of a loop, made when it is first
// met (fused_source.cpp, loop_kernel.cpp).
#include "backends/cuda/cuda.h"
#include "backends/cuda/fused_source.h"
#include "backends/cuda/generated_kernels.h"
#include "backends/cuda/loop_kernel.h"
#include "backends/cuda/plan.h"

namespace reel::cuda {

namespace {
constexpr const char* unknown_kernel = "a kernel is to be compiled first";
}

bool Cuda::fuses(const FusedCall& call) {
  return generated_->available(is_complex(call.dtype) || is_complex(result_of_call(call)));
}

void Cuda::fused(const FusedArgs& args) {
  if (args.rows * args.columns == 0) return;
  const cudaStream_t work = stream();
  const FusedLayout layout = lay_out(args);
  const CUfunction kernel = generated_->get(fused_key(args, layout), [&] {
    not_recorded(unknown_kernel);
    return fused_source(args, layout);
  });
  const std::vector<std::uint64_t> arguments = fused_arguments(args, layout);
  generated_->launch(kernel, blocks_for(layout.packs()), threads_per_block, arguments.data(), work);
  launched("fused", {static_cast<std::int64_t>(args.calls.size()), args.rows, args.columns});
}

bool Cuda::fused_loop(const FusedLoopArgs& args) {
  LoopLayout layout;
  if (!lay_out_loop(args, layout)) return false;
  const cudaStream_t work = stream();
  const CUfunction kernel = generated_->get(loop_key(args, layout), [&] {
    not_recorded(unknown_kernel);
    return loop_source(args, layout);
  });
  const std::vector<std::uint64_t> arguments = loop_arguments(args, layout);
  generated_->launch(kernel, layout.blocks, layout.threads, arguments.data(), work);
  launched("fused_loop", {args.steps, args.run.rows, args.run.columns});
  return true;
}

}  // namespace reel::cuda
