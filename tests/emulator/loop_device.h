// A device for tests of time loops: it computes as the CPU does, but finds kernels for whole loops as the CUDA backend
// does, and runs them on the host.
#pragma once
#include <cstring>
#include <limits>

#include "backends/cuda/codegen/loop_source.h"
#include "tests/emulator/host_kernels.h"
#include "tests/support/recording_device.h"

namespace reel::test {

class LoopDevice final : public RecordingDevice {
 public:
  /// Registers it, and makes it the device of new tensors.
  static LoopDevice& use() {
    static const bool registered [[maybe_unused]] = register_backend(
        "loops", [](const std::string&) -> std::unique_ptr<Backend> { return std::make_unique<LoopDevice>(); });
    return static_cast<LoopDevice&>(set_default_backend("loops"));
  }
  cuda::LoopLimits limits;
  std::vector<cuda::KernelSource> sources;  // kernels asked for so far, by their names for the host
  const HostKernels* kernels = nullptr;     // which are compiled; without, loops run step by step
  /// Loops that have a kernel, with the names that they have on a GPU.
  struct Seen {
    cuda::LoopValues values;
    cuda::LoopLayout layout;
    cuda::KernelSource source;
  };
  std::vector<Seen> seen;
  int at_once = 0, by_step = 0;  // loops that have a kernel, and that have none
  std::int64_t slices = 0;       // the most that a loop had

  std::string name() const override { return "loops"; }
  /// Spoils the memory: what a kernel forgets to write is not what the steps wrote there before.
  Storage* allocate(std::size_t bytes) override {
    Storage* const out = RecordingDevice::allocate(bytes);
    std::memset(out->data, 0xff, bytes);
    return out;
  }
  CostModel costs() const override {  // weights are not prepacked
    CostModel out;
    out.steps_to_prepack = std::numeric_limits<std::int64_t>::max();
    return out;
  }
  void run(const LoweredLoop& loop, std::span<std::byte* const> buffers) override {
    run_calls(*this, loop.setup, 1, buffers);
    auto calls = cuda::step_calls(loop);
    const auto values = calls ? cuda::find_values(std::move(*calls), loop) : std::nullopt;
    const auto layout = values ? lay_out_loop(*values, limits) : std::nullopt;
    ++(layout ? at_once : by_step);
    if (!layout) return run_calls(*this, loop.calls, loop.steps, buffers);
    slices = std::max(slices, layout->slices);
    const std::vector<char> aligned = cuda::aligned_buffers(buffers);
    const cuda::LoopKernel kernel = loop_kernel(*values, *layout, aligned);
    seen.push_back({*values, *layout, kernel.source});
    const auto [known, is_new] = numbers_.emplace(kernel.source.text, sources.size());
    if (is_new) sources.push_back(loop_kernel(*values, *layout, aligned, HostKernels::name(known->second)).source);
    if (!kernels) return run_calls(*this, loop.calls, loop.steps, buffers);
    std::vector<std::byte> counters(static_cast<std::size_t>(layout->groups * cuda::counter_bytes)),
        scratch(static_cast<std::size_t>(layout->scratch), std::byte{0xff});
    const auto arguments = loop_arguments(*values, kernel, loop.steps, buffers, counters.data(), scratch.data());
    kernels->call(known->second, arguments.data(), layout->blocks(), layout->threads, layout->barriers > 0);
  }

 private:
  std::map<std::string, std::size_t> numbers_;  // by text
};

}  // namespace reel::test
