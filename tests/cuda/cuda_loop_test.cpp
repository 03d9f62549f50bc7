// Kernels that run all steps of a loop: their text, run on the host by threads that wait for each other, against the
// steps one by one: loops at random to the last bit, and the scans of every cell with first and second derivatives.
#include "cells/cell.h"
#include "tests/emulator/scan_derivatives.h"
#include "tests/support/random_loops.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

constexpr std::int64_t steps = random_steps;

gpu::LoopValues values_of(const RandomLoop& loop) {
  const LoweredLoop lowered = loop.lowered();
  return find_values(gpu::step_calls(lowered).value(), lowered).value();
}
gpu::LoopKernel kernel_of(const RandomLoop& loop, const gpu::LoopValues& values, const gpu::LoopLayout& layout,
                          const std::string& name = "loop") {
  return loop_kernel(values, layout, gpu::aligned_buffers(loop.buffers()), name);
}

/// A recurrence with all that its kernels may meet, its outputs and derivatives.
struct Recurrence {
  std::string cell;
  std::int64_t hidden, batch;
  bool reverse;
  DType dtype = DType::f64;

  Tensors derivatives(bool unrolled) const {
    Init init(3, dtype);
    const CellType& type = cell_type(cell);
    const auto c = type.make(3, hidden, Settings(cell, type.settings), init);
    const Tensor xs = random({6, batch, 3}, 30, dtype);
    Tensors wrt{xs};
    for (const Parameter& p : c->parameters()) {
      if (p.trained) wrt.push_back(p.value);
    }
    const Step step = [&](const Tensors& s, const Tensors& x) {
      const Tensors next = c->step(s, x[0]);
      return Next{next, {next[0]}};
    };
    return ScannedStep{step, [&] { return c->initial(batch); }, {xs}, wrt, reverse}.derivatives(unrolled);
  }
};

/// Cells of which each loop, forwards and back, is one kernel: always, or unless their columns are shared out.
const std::vector<std::string> at_once{"eurnn", "exprnn", "dtriv",   "gru",          "janet",
                                       "lstm",  "lt_rnn", "lt_irnn", "nnrnn",        "ornn",
                                       "rnn",   "irnn",   "scornn",  "spectral_rnn", "srnn"},
    with_all_columns{"enrnn", "goru", "nru", "rnn-id", "rnn-orth", "urnn"};
bool is_in(const std::vector<std::string>& list, const std::string& x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

struct Case {
  Recurrence recurrence;
  gpu::LoopLimits limits;
};
constexpr int few = 3;  // processors: all columns in a block

/// Every cell, forwards and back, in every kind of layout.
std::vector<Case> all_cases() {
  // All columns in a block, several rows in each; then slices of the columns, in two groups of blocks.
  const gpu::LoopLimits whole{.processors = few}, sliced{.processors = 16, .weights = 16, .shared_weights = 0},
      gates{.processors = 16, .weights = 64, .shared_weights = 0}, in_shared{.processors = few, .weights = 16};
  std::vector<Case> cases;
  for (const CellType& type : cell_registry()) {
    Init init(3, DType::f64);
    if (!type.make(3, 8, Settings(type.name, type.settings), init)->recurrent()) continue;
    const bool has_gates = type.name == "lstm" || type.name == "gru" || type.name == "janet";
    cases.push_back({{type.name, 16, 7, false}, whole});
    cases.push_back({{type.name, 16, 4, true}, has_gates ? gates : sliced});
    if (has_gates) cases.push_back({{type.name, 16, 7, false}, in_shared});
  }
  cases.push_back({{"srnn", 1100, 2, false}, whole});
  for (const std::string cell : {"srnn", "eurnn", "gru"}) cases.push_back({{cell, 16, 1, false}, gates});
  for (const std::int64_t hidden : {18, 20}) {  // rows that do not begin at vectors, and that do
    for (const std::string cell : {"lstm", "rnn", "ornn"})
      cases.push_back({{cell, hidden, 37, false, DType::f32}, cell == "lstm" ? gates : sliced});
  }
  // The gradient's factors share the warps out; with whole rows, and with slices.
  cases.push_back({{"lstm", 32, 12, false, DType::f32}, whole});
  cases.push_back({{"lstm", 60, 12, false, DType::f32}, {.processors = 16, .weights = 96, .shared_weights = 0}});
  // Tensor cores: in f32 and in tf32, all columns and slices, rows beyond 16 at a time and in parts.
  for (const int products : {3, 1}) {
    const std::int64_t hidden = products == 3 ? 60 : 40;
    for (const std::string cell : {"lstm", "gru", "rnn"})
      cases.push_back({{cell, hidden, 37, false, DType::f32}, {.processors = 2, .tensor_products = products}});
    const gpu::LoopLimits parts{
        .processors = 8, .shared = 60000, .weights = 96, .shared_weights = 0, .tensor_products = products};
    cases.push_back({{"lstm", hidden, 70, false, DType::f32}, parts});
  }
  return cases;
}

}  // namespace

TEST_CASE("loops at random: one kernel computes what the steps do, to the last bit") {
  if (!HostKernels::available()) return;
  const auto loops = random_loops();
  std::vector<std::string> texts;
  std::vector<gpu::LoopValues> values;
  std::vector<gpu::LoopLayout> layouts;
  std::vector<gpu::LoopKernel> made;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    values.push_back(values_of(*loops[i]));
    layouts.push_back(lay_out_loop(values[i], {}).value());
    made.push_back(kernel_of(*loops[i], values[i], layouts[i], HostKernels::name(i)));
    texts.push_back(made[i].source.text);
  }
  const HostKernels kernels(texts);
  int waiting = 0, wide = 0, sliced = 0;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    RandomLoop& loop = *loops[i];
    const auto start = loop.memory();
    loop.cpu_fallback();
    const auto wanted = loop.results();
    loop.restore(start);
    CHECK(loop.results() != wanted);
    waiting += texts[i].find("    __syncthreads();") != std::string::npos;
    wide += layouts[i].lanes(loop.widest()) > 1;
    sliced += layouts[i].slices > 1;
    kernels.call(i, loop_arguments(values[i], made[i], steps, loop.buffers(), nullptr, nullptr).data(),
                 layouts[i].blocks(), layouts[i].threads);
    CHECK_MESSAGE((loop.results() == wanted), texts[i]);
  }
  CHECK(waiting > 4);
  CHECK(wide >= 4);
  CHECK(sliced > 4);
  CHECK(waiting < static_cast<int>(loops.size()));
}

TEST_CASE("NVRTC compiles loops; what no kernel takes is left to the steps") {
  gpu::KernelCompiler compiler(90, "");
  for (const auto& l : random_loops()) {
    const gpu::LoopValues values = values_of(*l);
    const gpu::KernelSource source = kernel_of(*l, values, lay_out_loop(values, {}).value()).source;
    CHECK(compiler.compile(source).substr(1, 3) == "ELF");
  }
}

TEST_CASE("every cell: scans by kernels of whole loops are what they mean, with derivatives") {
  if (!HostKernels::available()) return;
  LoopDevice& device = LoopDevice::use();
  const std::vector<Case> cases = all_cases();
  for (const Case& c : cases) {
    device.limits = c.limits;
    c.recurrence.derivatives(false);
  }
  const HostKernels kernels = compiled(device);
  std::int64_t slices = 0;
  int merged = 0, merged_slices = 0, shared_weights = 0, by_tensor_cores[2] = {}, in_parts = 0;
  for (const LoopDevice::Seen& s : device.seen) {
    for (const gpu::LoopStage& stage : s.layout.stages) {
      for (const gpu::ProductGroup& g : stage.groups) {
        if (g.factors > 1) ++(s.layout.slices > 1 ? merged_slices : merged);
        shared_weights += g.weights_at >= 0;
        if (g.tensor_products == 0) continue;
        ++by_tensor_cores[s.layout.slices > 1];
        in_parts += s.layout.chunk < s.layout.rows;
      }
    }
  }
  CHECK(merged > 0);
  CHECK(merged_slices > 0);
  CHECK(shared_weights > 4);
  CHECK(by_tensor_cores[0] > 2);
  CHECK(by_tensor_cores[1] > 2);
  CHECK(in_parts > 1);
  for (const Case& c : cases) {
    const std::string& cell = c.recurrence.cell;
    CAPTURE(cell);
    CAPTURE(c.limits.processors);
    device.limits = c.limits;
    device.kernels = nullptr;
    const Tensors wanted = c.recurrence.derivatives(true);
    device.kernels = &kernels;
    device.at_once = device.by_step = 0;
    device.slices = 0;
    const Tensors got = c.recurrence.derivatives(false);
    const bool all_columns = c.limits.processors == few;
    if (is_in(at_once, cell) || (all_columns && is_in(with_all_columns, cell))) CHECK(device.at_once >= 2);
    slices = std::max(slices, device.slices);
    const double within = c.limits.tensor_products == 1 ? 1e-2 : c.recurrence.dtype == DType::f32 ? 1e-5 : 1e-11;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(got[i], wanted[i]) < within);
    }
  }
  CHECK(slices > 3);
  set_default_backend("cpu");
  // NVRTC takes most of a second for each: CTest's cuda_loop_sources compiles all.
  gpu::KernelCompiler compiler(90, "");
  for (std::size_t i = 0; i < device.sources.size(); i += 4)
    CHECK(compiler.compile(device.sources[i]).substr(1, 3) == "ELF");
}

TEST_CASE("NVRTC compiles the loops of every cell" * doctest::skip()) {
  LoopDevice& device = LoopDevice::use();
  for (const Case& c : all_cases()) {
    device.limits = c.limits;
    c.recurrence.derivatives(false);
  }
  set_default_backend("cpu");
  gpu::KernelCompiler compiler(90, "");
  for (const gpu::KernelSource& s : device.sources) CHECK(compiler.compile(s).substr(1, 3) == "ELF");
}
