// Loops over time by themselves, on a GPU: microseconds per time step, forward and gradient, as one kernel wherever it
// fits and step by step; what the backend expects of it, how it is laid out, and what its kernel takes of the GPU.
#include "backends/cuda/codegen/loop_run.h"
#include "backends/cuda/cuda.h"
#include "bench/clock.h"
#include "bench/loop_sizes.h"
#include "engine/core/parse.h"
#include "tasks/app/run.h"
#include "tasks/io/output.h"

namespace reel {
namespace {

/// A loop of a step: the median of its times, and its last run. Layouts live as long as the step's plan.
struct TimedLoop {
  std::vector<double> times = {};
  std::optional<cuda::LoopRun> run = {};
  double per_step() const { return bench::median(times) / static_cast<double>(run->steps); }
};

/// The loops of a step of this size, in the order in which they run, and then what f makes of them.
void with_loops(const bench::LoopSize& size, std::int64_t time, std::int64_t rounds, cuda::Cuda& device,
                const std::function<void(std::vector<TimedLoop>&)>& f) {
  set_default_backend(device.name());
  const bench::LoopStep step(size, time, device);
  step();  // compiles kernels, opens libraries
  std::vector<TimedLoop> loops;
  std::size_t next = 0;
  device.watch_loops([&](const cuda::LoopRun& run) {
    if (next == loops.size()) loops.emplace_back();
    loops[next].run = run;
    loops[next++].times.push_back(run.microseconds);
  });
  for (std::int64_t i = 0; i < rounds; ++i, next = 0) step();
  device.watch_loops({});
  f(loops);
}

/// The GPU of this name, with loops as one kernel (",loops") or step by step (",steps").
cuda::Cuda& cuda_device(const std::string& name, const std::string& loops) {
  if (!name.starts_with("cuda")) throw Usage(fmt::format("--device {}: is no GPU. Hint: --device cuda", name));
  try {
    find_device(name);
  } catch (const Usage& e) {  // on a CPU there are no such loops
    const std::string text = e.what(), hint = " Hint: --device cpu";
    throw Usage(text.ends_with(hint) ? text.substr(0, text.size() - hint.size()) + " bench_loops needs one" : text);
  }
  return dynamic_cast<cuda::Cuda&>(find_device(name + loops));
}

/// "lstm:16x768": cell, batch and units.
bench::LoopSize parse_size(const std::string& text) {
  const std::size_t colon = text.find(':'), cross = text.find('x', colon == std::string::npos ? 0 : colon);
  const auto number = [&](std::size_t first, std::size_t last) -> std::int64_t {
    const auto n = parse<std::int64_t>(text.substr(first, last - first));
    return n && *n > 0 && *n < (1 << 20) ? *n : 0;
  };
  const bool parts = colon != std::string::npos && cross != std::string::npos;
  const std::int64_t batch = parts ? number(colon + 1, cross) : 0, hidden = parts ? number(cross + 1, text.size()) : 0;
  if (batch == 0 || hidden == 0)
    throw Usage(fmt::format("--sizes \"{}\" is no cell, batch and units. Hint: lstm:16x768,srnn:100x1024", text));
  try {
    cell_type(text.substr(0, colon));
  } catch (const SettingError& e) {
    throw Usage(fmt::format("--sizes \"{}\": {}", text, e.rule));
  }
  return {.cell = text.substr(0, colon), .batch = batch, .hidden = hidden};
}

int run(int argc, const char* const* argv) {
  std::string device = "cuda", sizes;
  std::int64_t time = 1024, rounds = 7;
  Options options("bench_loops", "What a time step of a loop costs on a GPU, the loop by itself.");
  options.add("device", device, "the GPU: cuda, cuda:1 for the second one, and what may follow", "Run");
  options.add("sizes", sizes, "cells, batches and units, as in lstm:16x768,srnn:100x1024; usual ones", "Run");
  options.add("time", time, "steps of each loop", "Run", Bounds{.low = 4, .high = 1e6});
  options.add("rounds", rounds, "how often each is timed; the median counts", "Run", Bounds{.low = 1, .high = 1e6});
  options.parse(argc, argv);
  std::vector<bench::LoopSize> list;
  for (const std::string& s : split_list(sizes)) list.push_back(parse_size(s));
  if (list.empty()) list = bench::loop_sizes();
  cuda::Cuda &at_once = cuda_device(device, ",loops"), &by_step = cuda_device(device, ",steps");
  print_out("{}: microseconds per time step of {} steps, medians of {}\n", device, time, rounds);
  print_out("{:<18} {:>8} {:>10} {:>9} {:>9}  {}\n", "", "", "one kernel", "expected", "by step", "layout");
  for (const bench::LoopSize& size : list) {
    std::vector<double> stepwise;
    with_loops(size, time, rounds, by_step, [&](const std::vector<TimedLoop>& loops) {
      for (const TimedLoop& l : loops) stepwise.push_back(l.per_step());
    });
    with_loops(size, time, rounds, at_once, [&](const std::vector<TimedLoop>& loops) {
      for (std::size_t i = 0; i < loops.size(); ++i) {
        const cuda::LoopRun& r = *loops[i].run;
        const std::string other = i < stepwise.size() ? fmt::format("{:.2f}", stepwise[i]) : "";
        print_out("{:<18} {:>8} ", size.name(), i == 0 ? "forward" : "gradient");
        if (!r.layout) {
          print_out("{:>10} {:>9} {:>9}  step by step\n", "", "", other);
          continue;
        }
        const cuda::LoopLayout& l = *r.layout;
        print_out(
            "{:10.2f} {:9.2f} {:>9}  {} groups x {} slices, {} rows, {} at a time, {} threads, {} registers, "
            "{} bytes spilled, {} KB shared, {} barriers\n",
            loops[i].per_step(), kernel_step(*r.values, l, at_once.loop_limits()), other, l.groups, l.slices, l.rows,
            l.chunk, l.threads, r.resources.registers, r.resources.spilled, l.bytes / 1024, l.barriers);
      }
    });
    flush_out();
  }
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("bench_loops", [&] { return reel::run(argc, argv); });
}
