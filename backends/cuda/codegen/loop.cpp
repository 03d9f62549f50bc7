// A time loop as one kernel: the calls of its step (step_calls.cpp), the values that they produce (loop_values.cpp),
// how these lie over threads and memory (loop_layout.cpp), and the source code of it all (loop_source.cpp). If any of
// these fails, the loop runs step by step.
#include "backends/cuda/codegen/generated_kernels.h"
#include "backends/cuda/codegen/loop_source.h"
#include "backends/cuda/cuda.h"

namespace reel::cuda {

void Cuda::run(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  run_calls(*this, loop.setup, 1, buffers);
  if (!run_at_once(loop, buffers)) run_calls(*this, loop.calls, loop.steps, buffers);
}

bool Cuda::run_at_once(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  constexpr std::int64_t few = 4;  // steps that are not worth a kernel
  if (options_.by_step || loop.steps < few) return false;
  auto calls = step_calls(loop);
  const bool rounds = calls && options_.precision != Precision::strict &&  // loop kernels compute in full precision
                      std::any_of(calls->begin(), calls->end(), [](const StepCall& c) {
                        return c.kind == StepCall::Kind::product && c.operands[0].dtype == DType::f32;
                      });
  const auto values = calls && !rounds ? find_values(std::move(*calls), loop.steps) : std::nullopt;
  const auto layout = values ? lay_out_loop(*values, limits_) : std::nullopt;
  if (!layout) return false;
  const LoopKernel kernel = loop_kernel(*values, *layout, aligned_buffers(buffers));
  const bool barriers = layout->barriers > 0;
  const std::int64_t counters = barriers ? (layout->groups * counter_bytes + 255) / 256 * 256 : 0;
  const StoragePtr room = scratch(static_cast<std::size_t>(counters + layout->scratch));
  const auto argument = loop_arguments(*values, kernel, loop.steps, buffers, room->data, room->data + counters);
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
  launched("loop", {loop.steps, values->rows, layout->groups, layout->slices});
  return true;
}

}  // namespace reel::cuda
