// A time loop as one kernel: its first steps are traced (loop_trace.cpp), their values identified (loop_values.cpp),
// laid out over threads and memory (loop_layout.cpp), and turned into source code (loop_source.cpp). If any of these
// fails, the loop runs step by step.
#include "backends/cuda/codegen/generated_kernels.h"
#include "backends/cuda/codegen/loop_source.h"
#include "backends/cuda/cuda.h"

namespace reel::cuda {

void Cuda::loop(std::int64_t steps, const std::function<void(std::int64_t i)>& step) {
  if (!loop_at_once(steps, step)) Backend::loop(steps, step);
}

bool Cuda::loop_at_once(std::int64_t steps, const std::function<void(std::int64_t i)>& step) {
  if (options_.by_step) return false;
  auto calls = trace_loop(loop_trace_, steps, step);
  const auto values = calls ? find_values(std::move(*calls), steps) : std::nullopt;
  const auto layout = values ? lay_out_loop(*values, limits_) : std::nullopt;
  if (!layout) return false;
  const LoopKernel kernel = loop_kernel(*values, *layout);
  const bool barriers = layout->barriers > 0;
  const std::int64_t counters = barriers ? (layout->groups * counter_bytes + 255) / 256 * 256 : 0;
  const StoragePtr room = scratch(static_cast<std::size_t>(counters + layout->scratch));
  const auto argument = loop_arguments(*values, kernel, steps, room->data, room->data + counters);
  constexpr std::size_t most = 4096 / sizeof(std::uint64_t);  // limit on kernel arguments
  if (argument.size() > most || !generated_->available(kernel.source.has_complex)) return false;
  const CUfunction function = generated_->get(kernel.source.text, [&] {
    not_captured("a kernel is to be compiled first");
    return kernel.source;
  });
  if (barriers)
    check(cudaMemsetAsync(room->data, 0, static_cast<std::size_t>(counters), stream()), "counters of a loop");
  generated_->launch(function, static_cast<unsigned>(layout->blocks()), static_cast<unsigned>(layout->threads),
                     layout->bytes, barriers, argument.data(), stream());
  launched("loop", {steps, values->rows, layout->groups, layout->slices});
  return true;
}

}  // namespace reel::cuda
