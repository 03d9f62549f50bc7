// A time loop as one kernel: its first steps are looked at (loop_notes.cpp), what they make is found (loop_values.cpp),
// shared out (loop_layout.cpp) and written down (loop_source.cpp). Where one of these does not know how, the loop runs
// step by step.
#include "backends/cuda/cuda.h"
#include "backends/cuda/generated_kernels.h"
#include "backends/cuda/loop_source.h"

namespace reel::cuda {

void Cuda::loop(std::int64_t steps, const std::function<void(std::int64_t i)>& step) {
  if (!loop_at_once(steps, step)) Backend::loop(steps, step);
}

bool Cuda::loop_at_once(std::int64_t steps, const std::function<void(std::int64_t i)>& step) {
  if (options_.by_step) return false;
  auto calls = look_at(notes_, steps, step);
  const auto values = calls ? find_values(std::move(*calls), steps) : std::nullopt;
  const auto layout = values ? lay_out_loop(*values, limits_) : std::nullopt;
  if (!layout) return false;
  const LoopKernel kernel = loop_kernel(*values, *layout);
  const bool waits = layout->waits > 0;
  const std::int64_t counters = waits ? (layout->groups * counter_bytes + 255) / 256 * 256 : 0;
  const StoragePtr room = scratch(static_cast<std::size_t>(counters + layout->scratch));
  const auto argument = loop_arguments(*values, kernel, steps, room->data, room->data + counters);
  constexpr std::size_t most = 4096 / sizeof(std::uint64_t);  // arguments of a kernel
  if (argument.size() > most || !generated_->available(kernel.source.has_complex)) return false;
  const CUfunction function = generated_->get(kernel.source.text, [&] {
    not_recorded("a kernel is to be compiled first");
    return kernel.source;
  });
  if (waits) check(cudaMemsetAsync(room->data, 0, static_cast<std::size_t>(counters), stream()), "counters of a loop");
  generated_->launch(function, static_cast<unsigned>(layout->blocks()), static_cast<unsigned>(layout->threads),
                     layout->bytes, waits, argument.data(), stream());
  launched("loop", {steps, values->rows, layout->groups, layout->slices});
  return true;
}

}  // namespace reel::cuda
