// What a training step costs: kernel by kernel, and as one graph on devices that write steps down. The task is that of
// copying, with symbols at random.
#include <algorithm>
#include <chrono>

#include "tasks/app/run.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/training_step.h"

namespace reel {
namespace {

constexpr std::int64_t symbols = 10;

struct Sizes {
  std::int64_t time = 220, batch = 20, hidden = 128;
};

class Symbols final : public Task {
 public:
  explicit Symbols(const Sizes& s) : sizes_(s) {}
  std::string name() const override { return "symbols"; }
  ModelShape shape() const override { return {.vocabulary = symbols, .outputs = symbols}; }
  double baseline() const override { return 0; }
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const Shape shape{sizes_.time, sizes_.batch};
    Batch b;
    for (Tensor* x : {&b.x, &b.y}) {
      Stream random(seed, streams[0]);
      std::vector<std::int32_t> values;
      for (std::int64_t i = 0; i < shape.numel(); ++i)
        values.push_back(static_cast<std::int32_t>(random.below(symbols)));
      *x = Tensor::from<std::int32_t>(values, shape);
    }
    return b;
  }
  Tensor loss(const Tensor& outputs, const Batch& b) const override { return cross_entropy(outputs, b.y); }

 private:
  Sizes sizes_;
};

struct Cost {
  double milliseconds = 0;
  int recorded = 0;
  std::size_t kernels = 0;
  std::string note;
};

/// The median of steps after the first few.
Cost cost_of(const std::string& cell, const Sizes& sizes, bool graphs, std::int64_t rounds, Backend& device) {
  using Clock = std::chrono::steady_clock;
  const Symbols task(sizes);
  Model model(task.shape(), {.cell = cell, .hidden = sizes.hidden}, Init(1, DType::f32, device));
  Optimizer optimizer(model.trained(), OptimizerOptions());
  TrainingStep steps(task, model, optimizer, graphs);
  const Batch batch = task.batch(1, {0});
  Tensors carry;
  std::vector<double> times;
  constexpr std::int64_t first = 3;  // kernels are compiled, the step is captured
  for (std::int64_t i = 0; i < rounds + first; ++i) {
    const auto start = Clock::now();
    carry.clear();
    steps(batch, {1, i}, carry);
    if (i >= first) times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return {times[static_cast<std::size_t>(rounds / 2)], steps.recorded(), steps.kernels(), steps.note().value_or("")};
}

int run(int argc, const char* const* argv) {
  std::string device = "cpu", cells = "srnn,lstm,gru,goru,nru,janet";
  Sizes sizes;
  std::int64_t rounds = 20, threads = 1;
  Options options("bench_steps", "What a training step costs, kernel by kernel and as one graph.");
  add_device(options, device);
  options.list("cells", cells, cell_names(), "cells, comma-separated", "Run");
  options.add("time", sizes.time, "steps of the sequences", "Run", Bounds{.low = 1, .high = 1e6});
  options.add("batch", sizes.batch, "sequences", "Run", Bounds{.low = 1, .high = 1e6});
  options.add("hidden", sizes.hidden, "units of the state", "Run", Bounds{.low = 1, .high = 1e6});
  options.add("rounds", rounds, "steps to take the median of", "Run", Bounds{.low = 1, .high = 1e6});
  options.add("threads", threads, "of the CPU", "Run", Bounds{.low = 1, .high = 1024});
  options.parse(argc, argv);
  Backend& place = find_device(device);
  place.set_threads(static_cast<int>(threads));
  for (const std::string& cell : split_list(cells)) {
    try {
      Model(Symbols(sizes).shape(), {.cell = cell, .hidden = sizes.hidden}, Init(1, DType::f32, place));
    } catch (const SettingError& e) {
      throw Usage(fmt::format("--cells {}, --hidden {}: {}", cell, sizes.hidden, e.rule));
    }
  }
  print_out("a training step of {} x {}, {} units, in ms\n", sizes.time, sizes.batch, sizes.hidden);
  for (const std::string& cell : split_list(cells)) {
    const Cost plain = cost_of(cell, sizes, false, rounds, place), graph = cost_of(cell, sizes, true, rounds, place);
    print_out("{:<14} kernel by kernel {:8.3f}", cell, plain.milliseconds);
    if (graph.recorded > 0)
      print_out("  as one graph {:8.3f}, of {} kernels", graph.milliseconds, graph.kernels);
    else
      print_out("  not captured{}{}", graph.note.empty() ? "" : ": ", graph.note);
    print_out("\n");
  }
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("bench_steps", [&] { return reel::run(argc, argv); });
}
