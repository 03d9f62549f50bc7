// The loops of real sizes on an H100, without one: how they are laid out, and what the compiler makes of them. No
// kernel may spill registers. With REEL_KERNEL_FOLDER, an empty folder, the kernels stay there, for a machine with a
// GPU (scripts/bundle).
#include <cstdlib>
#include <regex>
#include <set>

#include "backends/cuda/codegen/kernel_compiler.h"
#include "bench/loop_sizes.h"
#include "tests/emulator/loop_device.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;
namespace gpu = reel::cuda;

namespace {

/// A number that the compiler says of a kernel.
int said(const std::string& log, const char* pattern) {
  std::smatch found;
  return std::regex_search(log, found, std::regex(pattern)) ? std::stoi(found[1]) : -1;
}

std::string groups_of(const gpu::LoopLayout& layout) {
  std::string out;
  for (const gpu::LoopStage& stage : layout.stages) {
    for (const gpu::ProductGroup& g : stage.groups)
      out += fmt::format(" {}x{}{}", g.calls_per_factor(), g.factors, g.weights_at >= 0 ? "s" : "");
  }
  return out;
}

/// Those that are timed, and others between one block's room for weights and many blocks.
std::vector<bench::LoopSize> sizes() {
  std::vector<bench::LoopSize> out = bench::loop_sizes();
  for (const bench::LoopSize& more : std::vector<bench::LoopSize>{{"lstm", 20, 148},
                                                                  {"gru", 20, 160},
                                                                  {"janet", 20, 160},
                                                                  {"janet", 64, 256},
                                                                  {"nru", 100, 128},
                                                                  {"urnn", 100, 512},
                                                                  {"rnn-id", 20, 128}})
    out.push_back(more);
  return out;
}

}  // namespace

TEST_CASE("loops of real sizes: layouts for 132 processors, and no spilled registers on sm_90") {
  const char* const folder = std::getenv("REEL_KERNEL_FOLDER");
  gpu::KernelCompiler anew(90, folder ? folder : "");
  if (!anew.available()) {
    MESSAGE("skipped: no NVRTC here");
    return;
  }
  LoopDevice& device = LoopDevice::use();
  fmt::print(
      "{:<24} {:>4}  {:<8} groups x slices  rows (at a time)  products   registers  spilled  shared KB  barriers  "
      "estimated us\n",
      "", "", "");
  int loops = 0, by_tensor_cores = 0;
  std::set<std::string> texts;
  for (const int tensor_products : {0, 3, 1}) {  // multiply-adds, f32 and tf32 by tensor cores
    device.limits = {.shared = 232448, .tensor_products = tensor_products, .always = true};
    fmt::print("{}\n", tensor_products == 0 ? "fma" : tensor_products == 3 ? "f32" : "tf32");
    for (const bench::LoopSize& size : sizes()) {
      device.seen.clear();
      bench::LoopStep(size, 4, device)();
      for (std::size_t i = 0; i < device.seen.size(); ++i) {
        const auto& [values, layout, source] = device.seen[i];
        ++loops;
        const bool by_tensors = source.text.find("TensorWeights") != std::string::npos;
        by_tensor_cores += by_tensors;
        if (!texts.insert(source.text).second) continue;
        anew.compile(source);
        const int registers = said(anew.log(), "Used ([0-9]+) registers"),
                  spilled = said(anew.log(), "([0-9]+) bytes spill stores"),
                  frame = said(anew.log(), "([0-9]+) bytes stack frame");
        fmt::print("{:<24} {:>8}  {:>6} x {:<6}  {:>4} ({:>3})  {:<12} {:>9} {:>8} {:>10.0f} {:>9} {:>8.1f}\n",
                   size.name(), i == 0 ? "forward" : "gradient", layout.groups, layout.slices, layout.rows,
                   layout.chunk, groups_of(layout), registers, spilled, static_cast<double>(layout.bytes) / 1024,
                   layout.barriers, kernel_step(values, layout, device.limits));
        CHECK(registers > 0);
        CHECK(registers * layout.threads <= 65536);
        // A few registers of what a step needs once do no harm beside weights that fill the others.
        const int most = by_tensors ? 32 : 0;
        CHECK_MESSAGE(spilled <= most, size.name());
        CHECK_MESSAGE(frame <= most, size.name());
      }
    }
  }
  CHECK(loops >= 3 * 34);
  CHECK(by_tensor_cores > 12);
  CHECK(anew.compiled() == std::ssize(texts));
  set_default_backend("cpu");
}
