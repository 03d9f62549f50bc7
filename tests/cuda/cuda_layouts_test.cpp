// Loops of the sizes that networks have, as one kernel and step by step on the GPU: the same values and gradients, and
// the same bits in every run. On the emulator with as many processors as an H100 (REEL_EMULATOR_PROCESSORS) fewer steps
// and runs have to do.
#include <cstdlib>

#include "backends/cuda/codegen/loop_run.h"
#include "backends/cuda/cuda.h"
#include "bench/loop_sizes.h"
#include "tests/support/check.h"
#include "tests/support/gpu.h"

using namespace reel;
using namespace reel::test;

namespace {

Tensors on_device(const bench::LoopSize& size, std::int64_t time, Backend& device, int runs) {
  set_default_backend(device.name());
  const bench::LoopStep step(size, time, device);
  const Tensors out = step();
  for (int i = 1; i < runs; ++i) {
    const Tensors again = step();
    for (std::size_t k = 0; k < out.size(); ++k)
      CHECK_MESSAGE(difference(again[k], out[k]) == 0, fmt::format("{}: result {} of run {}", size.name(), k, i));
  }
  set_default_backend("cpu");
  return out;
}

void compare(std::int64_t batch, std::int64_t hidden) {
  Backend* const device = gpu_or_skip("cuda,loops");
  if (!device) return;
  const bool emulated = std::getenv("REEL_EMULATOR_PROCESSORS") != nullptr;
  const std::int64_t time = emulated ? 4 : 32;
  int sizes = 0;
  for (const bench::LoopSize& size : bench::loop_sizes()) {
    if (size.batch != batch || size.hidden != hidden) continue;
    ++sizes;
    int kernels = 0;
    double worst = 0;
    dynamic_cast<cuda::Cuda&>(*device).watch_loops([&](const cuda::LoopRun& run) { kernels += run.layout != nullptr; });
    const Tensors got = on_device(size, time, *device, emulated ? 1 : 50);
    dynamic_cast<cuda::Cuda&>(*device).watch_loops({});
    CHECK_MESSAGE(kernels >= 2, size.name());
    const Tensors wanted = on_device(size, time, backend("cuda,steps"), 1);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double error = difference(got[i], wanted[i]);
      CHECK_MESSAGE(error < 1e-5, fmt::format("{}, result {}: {:.2g}", size.name(), i, error));
      worst = std::max(worst, error);
    }
    fmt::print("{}: {} loops as one kernel, largest difference {:.1e}\n", size.name(), kernels, worst);
    std::fflush(stdout);
  }
  CHECK(sizes > 0);
}

}  // namespace

// One by one, so that CTest can run the emulator's side by side.
TEST_CASE("loops of 20 x 128: one kernel is what the steps are, with gradients") { compare(20, 128); }
TEST_CASE("loops of 20 x 128: one kernel with tf32 and bf16, too, which loops multiply more exactly") {
  for (const char* name : {"cuda,tf32", "cuda,bf16"}) {
    Backend* const device = gpu_or_skip(name);
    if (!device) return;
    int kernels = 0;
    dynamic_cast<cuda::Cuda&>(*device).watch_loops([&](const cuda::LoopRun& run) { kernels += run.layout != nullptr; });
    const Tensors got = on_device({"lstm", 20, 128}, 4, *device, 1);
    dynamic_cast<cuda::Cuda&>(*device).watch_loops({});
    CHECK(kernels == 2);
    const Tensors wanted = on_device({"lstm", 20, 128}, 4, backend("cuda,steps"), 1);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], wanted[i]) < 2e-2);  // products of the inputs
  }
}
TEST_CASE("loops of 64 x 256: one kernel is what the steps are, with gradients") { compare(64, 256); }
TEST_CASE("loops of 16 x 768: one kernel is what the steps are, with gradients") { compare(16, 768); }
TEST_CASE("loops of 128 x 768: one kernel is what the steps are, with gradients") { compare(128, 768); }
TEST_CASE("loops of 100 x 1024: one kernel is what the steps are, with gradients") { compare(100, 1024); }
