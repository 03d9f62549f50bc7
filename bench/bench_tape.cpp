// What the tape costs: nanoseconds to record and to differentiate a small op, and a training step of each cell.
//   build/bin/bench_tape [--filter REGEX] [--budget 0.5]
#include "bench/benchmarks.h"
#include "tasks/training/model.h"
#include "tasks/training/optimizer.h"

using namespace reel;

namespace {

constexpr int ops = 1000;

/// y = x op x ... on 8 ones: the arithmetic is nothing, what is left is the engine.
template <class F>
void chain(benchmark::State& state, F&& f) {
  const Tensor x = Tensor::full({8}, 1);
  for (auto _ : state) {
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < ops; ++i) y = f(y, x);
    benchmark::DoNotOptimize(y.data());
  }
  state.counters["per_op"] =
      benchmark::Counter(ops, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class F>
void differentiate(benchmark::State& state, F&& f) {
  const Tensor x = Tensor::full({8}, 1);
  for (auto _ : state) {
    state.PauseTiming();
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < ops; ++i) y = f(y, x);
    const Tensor loss = sum(y);
    state.ResumeTiming();
    const auto [dx] = grad(loss, {x});
    benchmark::DoNotOptimize(dx.data());
  }
  state.counters["per_op"] =
      benchmark::Counter(ops, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void record_add(benchmark::State& s) {
  chain(s, [](const Tensor& y, const Tensor& x) { return y + x; });
}
void record_mul(benchmark::State& s) {
  chain(s, [](const Tensor& y, const Tensor& x) { return y * x; });
}
void record_tanh(benchmark::State& s) {
  chain(s, [](const Tensor& y, const Tensor&) { return tanh(y); });
}
void differentiate_add(benchmark::State& s) {
  differentiate(s, [](const Tensor& y, const Tensor& x) { return y + x; });
}
void differentiate_mul(benchmark::State& s) {
  differentiate(s, [](const Tensor& y, const Tensor& x) { return y * x; });
}
void differentiate_tanh(benchmark::State& s) {
  differentiate(s, [](const Tensor& y, const Tensor&) { return tanh(y); });
}
BENCHMARK(record_add);
BENCHMARK(record_mul);
BENCHMARK(record_tanh);
BENCHMARK(differentiate_add);
BENCHMARK(differentiate_mul);
BENCHMARK(differentiate_tanh);

/// A whole training step (forward, gradient, RMSProp) on copying-like data: T = 220, B = 20, n = 128, f32, one thread.
void training_step(benchmark::State& state, const std::string& cell) {
  backend().set_threads(1);
  ModelOptions options;
  options.cell = cell;
  Model model({.vocabulary = 10, .outputs = 10}, options, Init(1));
  Optimizer optimizer(model.trained(), {});
  std::vector<std::int32_t> symbols;
  Stream random(1, 1);
  for (int i = 0; i < 220 * 20; ++i) symbols.push_back(static_cast<std::int32_t>(random.below(10)));
  const Tensor x = Tensor::from<std::int32_t>(symbols, {220, 20});
  Tensors parameters;
  for (const Parameter& p : model.trained()) parameters.push_back(p.value);
  for (auto _ : state) {
    Tape tape;
    const Tensors g = grad({cross_entropy(model(x), x)}, parameters);
    optimizer.step(g, optimizer.norm(g));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("bench_tape", [&] {
    Options options(
        "bench_tape",
        "What the tape costs: to record and to differentiate a small op, and a training step of each cell.");
    return bench::run_benchmarks(argc, argv, options, [] {
      for (const CellType& type : cell_registry())
        benchmark::RegisterBenchmark(("training_step/" + type.name).c_str(), training_step, type.name)
            ->Unit(benchmark::kMillisecond);
    });
  });
}
