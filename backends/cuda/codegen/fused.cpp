// A fusion group of elementwise calls as one kernel, generated on first use (fused_source.cpp), or as several where one
// would have too many arguments.
#include "backends/cuda/codegen/fused_source.h"
#include "backends/cuda/codegen/generated_kernels.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/plan.h"

namespace reel::cuda {

bool Cuda::fuses(const FusedCall&) { return generated_->available(); }

void Cuda::fused(const FusedArgs& args) {
  if (args.rows * args.columns == 0) return;
  const FusedLayout layout = lay_out(args);
  const std::vector<std::uint64_t> arguments = fused_arguments(args, layout);
  if (const std::size_t bytes = arguments.size() * sizeof(arguments[0]); bytes > most_argument_bytes) {
    FusedParts parts = split(args, args.calls.size() * most_argument_bytes / bytes);
    std::vector<StoragePtr> rooms;
    for (const std::size_t o : parts.passed) {
      rooms.push_back(scratch(static_cast<std::size_t>(args.rows * args.columns) * args.operands[o].element_bytes));
      parts.first.operands[o].data = parts.second.operands[o].data = rooms.back()->data;
    }
    fused(parts.first);
    return fused(parts.second);
  }
  const cudaStream_t work = stream();
  const auto source = [&] {
    not_captured("a kernel is to be compiled first");
    return fused_source(args, layout);
  };
  CUfunction kernel = nullptr;
  retried([&] { kernel = generated_->get(fused_key(args, layout), source); });
  generated_->launch(kernel, blocks_for(layout.packs()), threads_per_block, arguments.data(), work);
  launched("fused", {static_cast<std::int64_t>(args.calls.size()), args.rows, args.columns});
}

}  // namespace reel::cuda
