// Kernels that run all steps of a loop: their text, run on the host by threads that wait for each other, against the
// steps one by one; and whole scans on a device that is given runs and loops of the whole batch, as a GPU is.
#include "backends/cuda/kernel_compiler.h"
#include "backends/cuda/loop_kernel.h"
#include "cells/cell.h"
#include "tests/check.h"
#include "tests/fused_runs.h"
#include "tests/host_kernels.h"
#include "tests/whole_device.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

constexpr std::int64_t steps = 7;

/// A loop at random: a run with a state that goes through it, inputs that change from step to step and some that do
/// not, and results of all times. Numbers stay whole.
struct RandomLoop {
  std::unique_ptr<FusedRunMaker> run;
  std::vector<LoopWalk> walks;
  bool reverse = false;

  RandomLoop(std::uint64_t seed, std::int64_t rows, std::int64_t columns, int calls)
      : run(random_run(seed, rows, columns, calls, steps + 1)), reverse(seed % 2 == 1) {
    const bool keep = seed % 3 != 0;
    const int state = 0;  // of f32
    const int last = run->calls.back().out;
    const int next =
        run->map(Clamp{-5, 5},
                 run->cast(run->zip(Add{}, run->cast(last, DType::f64, true), run->cast(state, DType::f64, true), true),
                           DType::f32, true),
                 false);
    walks.resize(run->operands.size());
    std::vector<char> made(run->operands.size(), 0);
    for (const FusedCall& c : run->calls) made[static_cast<std::size_t>(c.out)] = 1;
    for (std::size_t k = 0; k < walks.size(); ++k) {
      const FusedOperand& o = run->operands[k];
      const std::size_t stride = static_cast<std::size_t>(rows * columns) * o.element_bytes;
      if (!o.local && (made[k] || run->pick(2))) walks[k] = {stride, 0, 0};
    }
    FusedOperand &before = run->operands[0], &after = run->operands[static_cast<std::size_t>(next)];
    after.data = before.data;
    const std::size_t stride = static_cast<std::size_t>(rows * columns) * sizeof(float);
    walks[0] = {stride, keep ? 0 : 2, keep && reverse ? 1 : 0};
    walks[static_cast<std::size_t>(next)] = {stride, keep ? 0 : 2, keep && reverse ? 0 : 1};
  }
};

std::vector<std::unique_ptr<RandomLoop>> random_loops() {
  std::vector<std::unique_ptr<RandomLoop>> loops;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {3, 7}, {2, 12}, {4, 5}};
    const auto& [rows, columns] = sizes[seed % 4];
    loops.push_back(std::make_unique<RandomLoop>(seed, rows, columns, 2 + static_cast<int>(seed) / 2));
  }
  // Rows of more columns than a block has threads: two, three and four for a thread, some of them not for all threads.
  for (const std::int64_t columns : {1025, 2048, 2999, 4096}) {
    const std::uint64_t seed = 100 + loops.size();
    loops.push_back(std::make_unique<RandomLoop>(seed, 2, columns, 12));
  }
  return loops;
}

}  // namespace

TEST_CASE("loops at random: one kernel computes what the steps do, to the last bit") {
  if (!HostKernels::available()) {
    MESSAGE("skipped: no g++ or no headers here");
    return;
  }
  const auto loops = random_loops();
  std::vector<std::string> texts;
  std::vector<gpu::LoopLayout> layouts(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const FusedArgs args = loops[i]->run->args();
    const FusedLoopArgs loop{args, steps, loops[i]->reverse, loops[i]->walks};
    REQUIRE(gpu::lay_out_loop(loop, layouts[i]));
    texts.push_back(gpu::loop_source(loop, layouts[i], HostKernels::name(i)).text);
  }
  const HostKernels kernels(texts);
  int waiting = 0, wide = 0;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    FusedRunMaker& run = *loops[i]->run;
    const auto start = run.memory();
    const FusedArgs args = run.args();
    const FusedLoopArgs loop{args, steps, loops[i]->reverse, loops[i]->walks};
    loop_by_cpu(loop);
    const auto wanted = run.results();
    run.restore(start);
    CHECK(run.results() != wanted);
    const bool rolls = gpu::has_rolls(args);
    waiting += rolls;
    wide += layouts[i].run.lanes > 1;
    kernels.call(i, gpu::loop_arguments(loop, layouts[i]), layouts[i].blocks, layouts[i].threads, rolls);
    CHECK_MESSAGE((run.results() == wanted), texts[i]);
  }
  CHECK(waiting > 4);
  CHECK(wide == 4);
  CHECK(waiting < static_cast<int>(loops.size()));
}

TEST_CASE("NVRTC compiles loops; what no kernel takes is left to the steps") {
  gpu::KernelCompiler compiler(90, "");
  for (const auto& l : random_loops()) {
    const FusedArgs args = l->run->args();
    const FusedLoopArgs loop{args, steps, l->reverse, l->walks};
    gpu::LoopLayout layout;
    REQUIRE(gpu::lay_out_loop(loop, layout));
    const gpu::KernelSource source = gpu::loop_source(loop, layout);
    if (!source.has_complex) CHECK(compiler.compile(source).substr(1, 3) == "ELF");
  }
  FusedRunMaker wide(2, 4097, 1);
  wide.roll(wide.add_full(DType::f32), 1, false);
  const std::vector<LoopWalk> walks(2);
  gpu::LoopLayout layout;
  CHECK(!gpu::lay_out_loop({wide.args(), steps, false, walks},
                           layout));  // more columns than four for each thread of a block
  wide.calls[0].kind = FusedCall::Kind::map;
  CHECK(gpu::lay_out_loop({wide.args(), steps, false, walks}, layout));
  CHECK(!gpu::lay_out_loop({wide.args(), 0, false, walks}, layout));
}

TEST_CASE("scans on a device that is given runs and loops of the whole batch are what they mean") {
  WholeDevice& device = WholeDevice::use();
  struct Case {
    const char* cell;
    bool is_one_loop;
    std::int64_t hidden = 6;
  };
  for (const auto& [name, is_one_loop, hidden] :
       {Case{"srnn", true}, Case{"srnn", true, 1100}, Case{"lstm", false}, Case{"gru", false}}) {
    for (bool reverse : {false, true}) {
      CAPTURE(name);
      CAPTURE(hidden);
      Init init(3, DType::f64);
      const CellType& type = cell_type(name);
      const auto cell = type.make(3, hidden, Settings(name, type.settings), init);
      const Tensor xs = random({5, 4, 3}, 30);
      const auto derivatives = [&](auto&& over_time, ScanPasses passes) {
        Tape tape;
        Tensors wrt{xs};
        for (const Parameter& p : cell->parameters()) wrt.push_back(p.value);
        const Step step = [&](const Tensors& s, const Tensors& x) {
          const Tensors next = cell->step(s, x[0]);
          return Next{next, {next[0]}};
        };
        const ScanResult out =
            over_time(step, cell->initial(4), Tensors{xs}, ScanOptions{.reverse = reverse, .passes = passes});
        const Tensor y = sum(out.ys[0] * random(out.ys[0].shape(), 5)) + sum(out.last[0]);
        Tensors all = grad({y}, wrt, {.create_graph = true});
        Tensor along = Tensor::zeros({}, DType::f64);
        for (std::size_t i = 0; i < wrt.size(); ++i) along = along + sum(all[i] * random(wrt[i].shape(), 40 + i));
        for (const Tensor& g : grad({along}, wrt)) all.push_back(g);
        all.push_back(out.ys[0]);
        return all;
      };
      const auto by_scan = [](const Step& step, const Tensors& s, const Tensors& x, const ScanOptions& o) {
        return scan(step, s, x, o);
      };
      const auto by_unroll = [](const Step& step, const Tensors& s, const Tensors& x, const ScanOptions& o) {
        return unroll(step, s, x, o);
      };
      const Tensors wanted = derivatives(by_unroll, {});
      device.runs = device.loops = 0;
      const Tensors got = derivatives(by_scan, {});
      CHECK(device.loops + device.runs > 0);
      if (is_one_loop) CHECK(device.loops >= 2);  // forwards and back
      const Tensors plain = derivatives(by_scan, {.fuse = false});
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK(difference(got[i], wanted[i]) < 1e-12);
        CHECK(difference(plain[i], wanted[i]) < 1e-12);
      }
    }
  }
  set_default_backend("cpu");
}
