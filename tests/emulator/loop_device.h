// A device for tests of time loops: it computes as the CPU does, but finds kernels for whole loops as the CUDA backend
// does, and runs them on the host.
#pragma once
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
  int at_once = 0, by_step = 0;             // loops that have a kernel, and that have none
  std::int64_t slices = 0;                  // the most that a loop had

  std::string name() const override { return "loops"; }
  void loop(std::int64_t steps, const std::function<void(std::int64_t)>& step) override {
    auto calls = cuda::trace_loop(loop_trace_, steps, step);
    const auto values = calls ? cuda::find_values(std::move(*calls), steps) : std::nullopt;
    const auto layout = values ? lay_out_loop(*values, limits) : std::nullopt;
    ++(layout ? at_once : by_step);
    if (!layout) return Backend::loop(steps, step);
    slices = std::max(slices, layout->slices);
    const cuda::LoopKernel kernel = loop_kernel(*values, *layout);
    const auto [known, is_new] = numbers_.emplace(kernel.source.text, sources.size());
    if (is_new) sources.push_back(loop_kernel(*values, *layout, HostKernels::name(known->second)).source);
    if (!kernels) return Backend::loop(steps, step);
    std::vector<std::byte> counters(static_cast<std::size_t>(layout->groups * cuda::counter_bytes)),
        scratch(static_cast<std::size_t>(layout->scratch), std::byte{0xff});
    kernels->call(known->second, loop_arguments(*values, kernel, steps, counters.data(), scratch.data()).data(),
                  layout->blocks(), layout->threads, layout->barriers > 0);
  }
  void fused(const FusedArgs& a) override {
    if (!cuda::traced(loop_trace_, a)) RecordingDevice::fused(a);
  }
  void gemm(const GemmArgs& a) override {
    if (!cuda::traced(loop_trace_, a)) RecordingDevice::gemm(a);
  }
  void rotate(const RotateArgs& a) override {
    if (!cuda::traced(loop_trace_, a)) RecordingDevice::rotate(a);
  }
  void copy(const CopyArgs& a) override {
    if (!cuda::traced(loop_trace_, a)) RecordingDevice::copy(a);
  }

 private:
  void asked() override {
    if (loop_trace_) throw cuda::NotTraceable();
  }

  cuda::LoopTrace* loop_trace_ = nullptr;
  std::map<std::string, std::size_t> numbers_;  // by text
};

}  // namespace reel::test
