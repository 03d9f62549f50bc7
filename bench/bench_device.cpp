// What ops cost on any device, beside what it can do, in one run: large elementwise ops and reductions as a share of
// the bandwidth of a copy, products, and the cost of a small op. Work is queued, and waited for by reading one number.
#include <cstdio>
#include <map>
#include <set>

#include "bench/clock.h"
#include "cells/cell.h"
#include "ops/spectral.h"
#include "tasks/app/run.h"

namespace reel {
namespace {

/// Median seconds of one call of f.
double seconds(std::int64_t rounds, const std::function<void()>& f) {
  const auto time = [&](int repeat) {
    return bench::device_seconds([&] {
      for (int i = 0; i < repeat; ++i) f();
    });
  };
  time(1);
  const int repeat = static_cast<int>(std::clamp(0.01 / time(1), 1.0, 1000.0));  // a read is a small part of it
  std::vector<double> times;
  for (std::int64_t i = 0; i < rounds; ++i) times.push_back(time(repeat) / repeat);
  return bench::median(times);
}

/// Median seconds of a call of f in a captured graph of many; of a call by itself on devices that capture nothing.
double captured(std::int64_t rounds, const std::function<void()>& f) {
  constexpr int many = 200;
  f();
  const std::unique_ptr<CapturedGraph> graph = backend().capture();
  if (!graph) return seconds(rounds, f);
  for (int i = 0; i < many; ++i) f();
  graph->stop();
  return seconds(rounds, [&] { graph->replay(); }) / many;
}

/// What a time step costs kernel by kernel, in a captured graph: a gap, a copy, products; and what follows from it for
/// the choice between one kernel and many (backends/cuda/codegen/loop_costs.h).
void kernels_of_a_step(std::int64_t rounds, std::int64_t side) {
  const auto line = [&](const std::string& name, const std::function<void()>& f) {
    const double time = captured(rounds, f) * 1e6;
    print_out("{:<40} {:8.2f} us\n", name, time);
    return time;
  };
  const Tensor x = uniform({20, 128}, -1, 1, 1, 5);
  Tensor y = Tensor::empty(x.spec());
  const double launch = line("in a graph: add of 20 x 128", [&] { x + x; });
  line("in a graph: copy of 20 x 128", [&] { y.assign(x); });
  line("in a graph: zeros of 20 x 128", [&] { Tensor::zeros({20, 128}); });
  double product = 0, flops = 0;
  for (const auto& [rows, n] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{20, 128}, {16, 768}, {64, 256}, {128, 768}, {2048, 768}}) {
    if (n > side) continue;
    const Tensor a = uniform({rows, n}, -1, 1, 1, 5), b = uniform({n, n}, -1, 1, 1, 6);
    const double time =
        line(fmt::format("in a graph: matmul of {0} x {1} by {1} x {1}", rows, n), [&] { matmul(a, b); });
    if (product == 0) product = time;
    flops = 2 * static_cast<double>(rows * n * n) / time;
  }
  print_out("LoopCosts: launch = {:.2f}, product = {:.2f}, flops = {:.2g}; the others are bench_barriers'\n", launch,
            product, flops);
}

/// What decides how the backend calls its libraries: gradients of weights, whose sums are long, in TFLOP/s; thin
/// products as SRNN has them; eigenvalues here and on the CPU. `side` is the most of rows and columns.
void library_calls(std::int64_t rounds, std::int64_t side) {
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    m = std::min(m, side), n = std::min(n, side), k = std::min(k, 32 * side);
    const Tensor a = uniform({k, m}, -1, 1, 1, 5), b = uniform({k, n}, -1, 1, 1, 6);
    const double time = captured(rounds, [&] { matmul(a, b, {.transpose_a = true}); });
    print_out("in a graph: a' b, {} x {} of {} rows: {:8.1f} us, {:.1f} TFLOP/s\n", m, n, k, time * 1e6,
              2e-12 * static_cast<double>(m * n * k) / time);
  };
  product(768, 768, 16384);
  product(768, 3072, 16384);
  product(1024, 8, 78400);
  for (const std::int64_t n : {128, 256, 512}) {
    if (n > side) continue;
    for (Backend* device : {&backend(), &backend("cpu")}) {
      const Tensor a = uniform({n, n}, -1, 1, 1, 5, DType::f64, *device);
      print_out("eigenvalues of {0} x {0} on {1}: {2:.2f} ms\n", n, device->name(),
                1e3 * seconds(rounds, [&] { eig(a); }));
    }
  }
}

/// A sum of a cell's states over time and its gradients, at the sizes of pixel by pixel MNIST with SRNN.
void training_step(const std::string& name, std::int64_t time, std::int64_t hidden, bool fuse) {
  constexpr std::int64_t batch = 100;
  static std::map<std::string, std::unique_ptr<Cell>> cells;
  static const Tensor xs = uniform({time, batch, 1}, 0, 1, 1, 9);
  std::unique_ptr<Cell>& cell = cells[name];
  if (!cell) {
    Init init(1, DType::f32);
    const CellType& type = cell_type(name);
    cell = type.make(1, name == "srnn" ? hidden : hidden / 8, Settings(name, type.settings), init);
  }
  Tape tape;
  Tensors wrt;
  for (const Parameter& p : cell->parameters()) wrt.push_back(p.value);
  ScanPasses passes;
  passes.fuse = fuse;
  grad({sum(scan(*cell, cell->initial(batch), xs, {.passes = passes}).hs)}, wrt);
}

int run(int argc, const char* const* argv) {
  std::string device = "cpu";
  std::int64_t large = 1 << 26, time = 784, hidden = 1024, side = 4096, rounds = 7;
  Options options("bench_device", "What ops cost on a device, beside its bandwidth.");
  add_device(options, device);
  options.add("elements", large, "of a large tensor of f32; rounded down to a multiple of 2^16", "Run",
              Bounds{.low = 1 << 16, .high = 1 << 30});
  options.add("time", time, "steps of the loops over time", "Run", Bounds{.low = 1, .high = 1e6});
  options.add("hidden", hidden, "units of the loops over time; an LSTM has an eighth", "Run",
              Bounds{.low = 8, .high = 1 << 16});
  options.add("side", side, "of the largest matrices of a product", "Run", Bounds{.low = 128, .high = 1 << 16});
  options.add("rounds", rounds, "how often each is timed; the median counts", "Run", Bounds{.low = 1, .high = 1e6});
  options.parse(argc, argv);
  const auto seconds = [rounds](const std::function<void()>& f) { return reel::seconds(rounds, f); };
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what is known is to be read even if time runs out
  large = large >> 16 << 16;
  print_out("device {}, large tensors of {} numbers\n", use_device(device).name(), large);

  const Tensor x = uniform({large}, 0.1, 1, 1, 1), y = uniform({large}, 0.1, 1, 1, 2);
  const double all = 4.0 * static_cast<double>(large);
  Tensor copy = Tensor::empty(x.spec());
  const double bound = 2 * all / seconds([&] { copy.assign(x); });
  print_out("{:<40} {:8.1f} GB/s\n", "copy", bound / 1e9);
  const auto bandwidth = [&](const char* name, double bytes, const std::function<void()>& f) {
    const double rate = bytes / seconds(f);
    print_out("{:<40} {:8.1f} GB/s  {:4.0f} % of a copy\n", name, rate / 1e9, 100 * rate / bound);
  };
  const Tensor rows = reshape(x, {large >> 10, 1024}), row = uniform({1024}, 0, 1, 1, 3);
  const Tensor column = uniform({large >> 10, 1}, 0, 1, 1, 3);
  bandwidth("add", 3 * all, [&] { x + y; });
  bandwidth("add a row", 2 * all, [&] { rows + row; });
  bandwidth("mul by a column", 2 * all, [&] { rows* column; });
  bandwidth("affine", 2 * all, [&] { 2 * x; });
  bandwidth("tanh", 2 * all, [&] { tanh(x); });
  bandwidth("sigmoid", 2 * all, [&] { sigmoid(x); });
  bandwidth("to f64", 3 * all, [&] { cast(x, DType::f64); });
  bandwidth("less, to bool", 2.25 * all, [&] { x < y; });
  bandwidth("sum of all", all, [&] { sum(x); });
  bandwidth("sum over the last axis", all, [&] { sum(rows, {-1}); });
  bandwidth("sum over the first axis", all, [&] { sum(rows, {0}); });
  bandwidth("max over the last axis", all, [&] { max(rows, {-1}); });
  bandwidth("argmax over the last axis", all, [&] { argmax(rows); });
  bandwidth("softmax", 2 * all, [&] { softmax(rows); });
  bandwidth("transpose", 2 * all, [&] { transpose(rows); });
  bandwidth("roll", 2 * all, [&] { roll(rows, 1); });
  bandwidth("uniform", all, [&] { uniform({large}, 0, 1, 1, 1); });
  for (DType dtype : {DType::f32, DType::f64, DType::c64}) {
    for (const std::int64_t n : std::set<std::int64_t>{128, std::min<std::int64_t>(side, 1024), side}) {
      const Tensor a = cast(uniform({n, n}, -1, 1, 1, 1), dtype);
      const double work = (is_complex(dtype) ? 8.0 : 2.0) * static_cast<double>(n * n * n);
      print_out("{:<40} {:8.1f} GFLOP/s\n", fmt::format("matmul {} {}", name_of(dtype), n),
                work / seconds([&] { matmul(a, a); }) / 1e9);
    }
  }
  const Tensor little = uniform({20, 128}, -1, 1, 1, 5), weight = uniform({128, 128}, -1, 1, 1, 6);
  const auto small = [&](const char* name, const std::function<void()>& f) {
    print_out("{:<40} {:8.2f} us\n", name, seconds(f) * 1e6);
  };
  small("add of 20 x 128", [&] { little + little; });
  small("tanh of 20 x 128", [&] { tanh(little); });
  small("sum of 20 x 128 over the last axis", [&] { sum(little, {-1}); });
  small("matmul of 20 x 128 by 128 x 128", [&] { matmul(little, weight); });
  small("reading one number", [&] { Tensor::zeros({1}).item(); });
  kernels_of_a_step(rounds, side);
  if (!bench::on_cpu()) library_calls(rounds, side);
  for (const char* cell : {"srnn", "lstm"}) {
    for (const bool fuse : {true, false})
      print_out("{:<40} {:8.2f} ms\n", fmt::format("training step of {}, {}", cell, fuse ? "fused" : "call by call"),
                1e3 * seconds([&] { training_step(cell, time, hidden, fuse); }));
  }
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("bench_device", [&] { return reel::run(argc, argv); });
}
