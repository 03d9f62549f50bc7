// A time loop as one kernel: the calls of its step (step_calls.cpp), the values that they produce (loop_values.cpp),
// how these lie over threads and memory (loop_layout.cpp), and the source code of it all (loop_source.cpp). A loop that
// one of these cannot have runs step by step, as all loops do without NVRTC. If a kernel that was made is not compiled,
// loaded or launched, that is an error.
#include <chrono>
#include <limits>

#include "backends/cuda/codegen/loop_run.h"
#include "backends/cuda/codegen/loop_source.h"
#include "backends/cuda/cuda.h"
#include "engine/core/error.h"

namespace reel::cuda {

struct Cuda::PlannedLoop {
  std::uint64_t device;       // its serial number
  std::vector<char> aligned;  // by buffer
  std::optional<LoopValues> values = {};
  std::optional<LoopLayout> layout = {};  // of one kernel; none: step by step
  LoopKernel kernel = {};
  CUfunction function = nullptr;
};

/// Neither kernels of loops nor cuBLAS gain from another layout of the weights, and a copy in parts is many launches.
CostModel Cuda::costs() const {
  CostModel out;
  out.steps_to_prepack = out.copied_at_once = std::numeric_limits<std::int64_t>::max();
  return out;
}

void Cuda::run(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  run_calls(*this, loop.setup, 1, buffers);
  PlannedLoop& plan = planned(loop, buffers);
  if (!watcher_ || capturing_) return run_planned(plan, loop, buffers);
  using Clock = std::chrono::steady_clock;
  check(cudaStreamSynchronize(stream()), "wait for what is before a loop");
  const auto start = Clock::now();
  run_planned(plan, loop, buffers);
  check(cudaStreamSynchronize(stream()), "wait for a loop");
  const std::chrono::duration<double, std::micro> time = Clock::now() - start;
  watcher_({plan.values ? &*plan.values : nullptr, plan.layout ? &*plan.layout : nullptr, loop.steps, time.count(),
            plan.layout ? generated_->resources(plan.function) : KernelResources()});
}

Cuda::PlannedLoop& Cuda::planned(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  std::vector<char> aligned = aligned_buffers(buffers);
  auto* const kept = static_cast<PlannedLoop*>(loop.kept.get());
  if (kept && kept->device == serial() && kept->aligned == aligned) return *kept;
  auto out = std::make_shared<PlannedLoop>(PlannedLoop{serial(), std::move(aligned)});
  constexpr std::int64_t few = 4;  // steps that are not worth a kernel
  auto calls = options_.by_step || loop.steps < few ? std::nullopt : step_calls(loop);
  if (calls) out->values = find_values(std::move(*calls), loop);
  auto layout = out->values ? lay_out_loop(*out->values, *limits_) : std::nullopt;
  if (layout) {
    out->kernel = loop_kernel(*out->values, *layout, out->aligned);
    if (argument_bytes(*out->values, out->kernel) <= most_argument_bytes && generated_->available())
      out->layout = std::move(layout);
  }
  loop.kept = out;
  return *out;
}

void Cuda::run_planned(PlannedLoop& plan, const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  if (!plan.layout) return run_calls(*this, loop.calls, loop.steps, buffers);
  const LoopLayout& layout = *plan.layout;
  const auto named = [&](auto&& f) {  // its errors say which loop it is
    try {
      f();
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& e) {
      throw Error(
          fmt::format("{}: a loop of {} steps and {} rows, {} blocks of {} threads, {} bytes of shared memory. Hint: "
                      "--device {},steps",
                      e.what(), loop.steps, plan.values->rows, layout.blocks(), layout.threads, layout.bytes, name()));
    }
  };
  if (!plan.function) {
    const auto source = [&] {
      not_captured("a kernel is to be compiled first");
      return plan.kernel.source;
    };
    named([&] { retried([&] { plan.function = generated_->get(plan.kernel.source.text, source); }); });
  }
  for (const StepCall& call : plan.values->calls) {  // the loop's kernel leaves out those that are out of range
    if (!call.has_index()) continue;
    const bool gather = call.kind == StepCall::Kind::gather;
    const Access& index = call.operands[2];
    const std::byte* const first = buffers[static_cast<std::size_t>(index.walk.buffer)] + index.walk.offset;
    check_indices(gather ? "gather_rows" : "segment_sum", reinterpret_cast<const std::int32_t*>(first), index.columns,
                  gather ? call.operands[0].columns : call.columns());
  }
  const bool barriers = layout.barriers > 0;
  const std::int64_t counters = barriers ? (layout.groups * counter_bytes + 255) / 256 * 256 : 0;
  const StoragePtr room = scratch(static_cast<std::size_t>(counters + layout.scratch));
  const auto argument =
      loop_arguments(*plan.values, plan.kernel, loop.steps, buffers, room->data, room->data + counters);
  if (barriers) fill({DType::f32, counters / 4, 0.0, room->data});
  named([&] {
    generated_->launch(plan.function, static_cast<unsigned>(layout.blocks()), static_cast<unsigned>(layout.threads),
                       layout.bytes, barriers, argument.data(), stream());
  });
  launched("loop", {loop.steps, plan.values->rows, layout.groups, layout.slices});
}

}  // namespace reel::cuda
