// Scans by kernels of whole loops, with first and second derivatives, against the same steps unrolled.
#pragma once
#include "backends/cuda/codegen/kernel_compiler.h"
#include "tests/emulator/loop_device.h"
#include "tests/support/check.h"

namespace reel::test {

struct ScannedStep {
  Step step;
  std::function<Tensors()> initial;
  Tensors xs, wrt;  // of which derivatives are taken
  bool reverse = false;

  /// By each of wrt, of a sum of the outputs and last states along a direction at random; by each of them, of these
  /// along others; the outputs and the last states.
  Tensors derivatives(bool unrolled) const {
    const auto along_random = [](const Tensor& a, std::uint64_t seed) {
      const Tensor product = a * random(a.shape(), seed, a.dtype());
      return sum(is_complex(a.dtype()) ? real(product) : product);
    };
    Tape tape;
    const ScanOptions options{.reverse = reverse};
    const ScanResult out = unrolled ? unroll(step, initial(), xs, options) : scan(step, initial(), xs, options);
    Tensor loss = along_random(out.ys[0], 5);
    for (std::size_t i = 0; i < out.last.size(); ++i) loss = loss + along_random(out.last[i], 20 + i);
    Tensors all = grad({loss}, wrt, {.create_graph = true});
    Tensor along = along_random(all[0], 40);
    for (std::size_t i = 1; i < wrt.size(); ++i) along = along + along_random(all[i], 40 + i);
    for (const Tensor& g : grad({along}, wrt)) all.push_back(g);
    all.push_back(out.ys[0]);
    all.insert(all.end(), out.last.begin(), out.last.end());
    return all;
  }
};

/// The kernels that a device was asked for, compiled.
inline HostKernels compiled(const LoopDevice& device) {
  std::vector<std::string> texts;
  for (const cuda::KernelSource& s : device.sources) texts.push_back(s.text);
  return HostKernels(texts);
}

struct LoopCase {
  std::string name;
  bool single;  // precision
  ScannedStep scanned;
};

/// Checks that both loops of each case are one kernel each, on three processors, and compute what the steps do.
inline void check_loops(const std::function<std::vector<LoopCase>()>& make) {
  if (!HostKernels::available()) return;
  LoopDevice& device = LoopDevice::use();
  device.limits = {.processors = 3};
  const std::vector<LoopCase> cases = make();  // on the device
  for (const LoopCase& c : cases) c.scanned.derivatives(false);
  const HostKernels kernels = compiled(device);
  for (const LoopCase& c : cases) {
    CAPTURE(c.name);
    device.kernels = nullptr;
    const Tensors wanted = c.scanned.derivatives(true);
    device.kernels = &kernels;
    device.at_once = 0;
    const Tensors got = c.scanned.derivatives(false);
    CHECK(device.at_once >= 2);
    const std::size_t n = c.scanned.wrt.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(i);
      const bool second = i >= n && i < 2 * n;  // derivatives, which rounding changes more
      CHECK(difference(got[i], wanted[i]) < (!c.single ? 1e-11 : second ? 1e-4 : 1e-5));
    }
  }
  device.kernels = nullptr;
  set_default_backend("cpu");
  cuda::KernelCompiler compiler(90, "");
  for (std::size_t i = 0; i < device.sources.size(); i += 3)  // others differ from these by batch and dtype
    CHECK(compiler.compile(device.sources[i]).substr(1, 3) == "ELF");
}

}  // namespace reel::test
