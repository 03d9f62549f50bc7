// What an op costs beside what the machine can do, in one run: large elementwise ops and reductions as a share of the
// bandwidth of a triad, products as a share of plain cblas, and the cost of a small op. One thread. On another device
// (--device) the bandwidth is that of a copy there, and products are beside nothing.
#include <cblas.h>

#include "bench/clock.h"
#include "tasks/app/run.h"

namespace reel::bench {
namespace {

/// The median times of two functions run in turn, so that a busy machine slows both.
std::pair<double, double> side_by_side(std::int64_t rounds, const std::function<void()>& f,
                                       const std::function<void()>& g) {
  std::vector<double> a, b;
  f();
  g();
  for (std::int64_t i = 0; i < rounds; ++i) {
    a.push_back(device_seconds(f));
    b.push_back(device_seconds(g));
  }
  return {median(a), median(b)};
}

/// Bytes a second of ops against those of a triad a = b + s c of three arrays, or on another device, where so short a
/// work is done many times, of a copy.
class Bandwidth {
 public:
  Bandwidth(std::int64_t elements, std::int64_t rounds)
      : rounds_(rounds),
        bound_bytes_((cpu_ ? 12.0 : 8.0) * static_cast<double>(elements)),
        a_(cpu_ ? static_cast<std::size_t>(elements) : 0),
        b_(a_.size(), 1),
        c_(a_.size(), 2),
        from_(Tensor::zeros({cpu_ ? 1 : elements})),
        to_(Tensor::empty(from_.spec())) {}

  /// Of `op`, which moves `bytes`.
  void operator()(const char* name, double bytes, const std::function<void()>& op) {
    const int times = cpu_ ? 1 : 50;
    const auto [own, other] = side_by_side(
        rounds_,
        [&] {
          for (int i = 0; i < times; ++i) op();
        },
        [&] {
          for (int i = 0; !cpu_ && i < times; ++i) to_.assign(from_);
          for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = b_[i] + 3.0F * c_[i];
        });
    const double rate = bytes * times / own, bound = bound_bytes_ * times / other;
    print_out("{:<34} {:6.1f} GB/s  {} {:6.1f} GB/s  share {:4.0f} %\n", name, rate / 1e9, cpu_ ? "triad" : "copy",
              bound / 1e9, 100 * rate / bound);
  }

 private:
  const bool cpu_ = on_cpu();
  std::int64_t rounds_;
  double bound_bytes_;
  std::vector<float> a_, b_, c_;
  Tensor from_, to_;
};

void gemm(std::int64_t rounds, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b) {
  const Tensor a = uniform({m, k}, -1, 1, 1, 1);
  const Tensor b = uniform(transpose_b ? Shape{n, k} : Shape{k, n}, -1, 1, 1, 2);
  const bool beside_cblas = on_cpu();
  std::vector<float> c(static_cast<std::size_t>(m * n));
  const auto repeat = static_cast<int>(std::max<std::int64_t>(1, (beside_cblas ? 20000000 : 2000000000) / (m * n * k)));
  const auto [own, plain] = side_by_side(
      rounds,
      [&] {
        for (int i = 0; i < repeat; ++i) matmul(a, b, {.transpose_b = transpose_b});
      },
      [&] {
        for (int i = 0; beside_cblas && i < repeat; ++i)
          cblas_sgemm(CblasRowMajor, CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(m),
                      static_cast<int>(n), static_cast<int>(k), 1, a.data_as<float>(), static_cast<int>(k),
                      b.data_as<float>(), static_cast<int>(transpose_b ? k : n), 0, c.data(), static_cast<int>(n));
      });
  const double flops = 2.0 * static_cast<double>(m * n * k) * repeat;
  print_out("matmul {:>5} x {:>4} x {:>4}{:<12} {:6.1f} GFLOP/s", m, n, k, transpose_b ? " transposed" : "",
            flops / own / 1e9);
  if (beside_cblas) print_out("  cblas {:6.1f}  share {:4.0f} %", flops / plain / 1e9, 100 * plain / own);
  print_out("\n");
}

void small(std::int64_t rounds, const char* name, const std::function<void()>& op) {
  constexpr int times = 20000;
  const auto [own, same] = side_by_side(
      rounds,
      [&] {
        for (int i = 0; i < times; ++i) op();
      },
      [] {});
  print_out("{:<34} {:6.0f} ns\n", name, own / times * 1e9);
}

int run(int argc, const char* const* argv) {
  std::string device = "cpu";
  std::int64_t large = 1 << 24, rounds = 15;
  Options options("bench_ops", "What an op costs, beside what the machine can do. One thread.");
  add_device(options, device);
  options.add("elements", large, "of a large tensor of f32; rounded down to a multiple of 2048", "Run",
              Bounds{.low = 2048, .high = 1 << 30});
  options.add("rounds", rounds, "how often each is timed; the median counts", "Run", Bounds{.low = 1, .high = 1e6});
  options.parse(argc, argv);
  large = large / 2048 * 2048;
  print_out("device {}, large tensors of {} numbers\n", use_device(device).name(), large);
  backend().set_threads(1);
  Bandwidth bandwidth(large, rounds);
  const Tensor x = uniform({large}, 0.1, 1, 1, 1), y = uniform({large}, 0.1, 1, 1, 2), rows = reshape(x, {-1, 1024});
  const Tensor row = uniform({1024}, 0, 1, 1, 3);
  const double all = 4.0 * static_cast<double>(large);
  const std::int64_t half = large / 2048;  // of the rows
  bandwidth("add", 3 * all, [&] { x + y; });
  bandwidth("mul", 3 * all, [&] { x* y; });
  bandwidth("div", 3 * all, [&] { x / y; });
  bandwidth("add a row", 2 * all, [&] { rows + row; });
  bandwidth("affine", 2 * all, [&] { 2 * x; });
  bandwidth("relu", 2 * all, [&] { relu(x); });
  bandwidth("sqrt", 2 * all, [&] { sqrt(x); });
  bandwidth("exp", 2 * all, [&] { exp(x); });
  bandwidth("log", 2 * all, [&] { log(x); });
  bandwidth("tanh", 2 * all, [&] { tanh(x); });
  bandwidth("sigmoid", 2 * all, [&] { sigmoid(x); });
  bandwidth("sin", 2 * all, [&] { sin(x); });
  const Tensor z = complex(slice(x, 0, 0, large / 2), slice(y, 0, 0, large / 2));
  bandwidth("mul, complex", 3 * all, [&] { z* z; });
  bandwidth("abs, complex", 1.5 * all, [&] { abs(z); });
  bandwidth("less, to bool", 2.25 * all, [&] { x < y; });
  const Tensor condition = x < y;
  bandwidth("where", 3.25 * all, [&] { where(condition, x, y); });
  bandwidth("sum of all", all, [&] { sum(x); });
  bandwidth("sum over the last axis", all, [&] { sum(rows, {-1}); });
  bandwidth("sum over the first axis", all, [&] { sum(rows, {0}); });
  bandwidth("max over the last axis", all, [&] { max(rows, {-1}); });
  bandwidth("max over the first axis", all, [&] { max(rows, {0}); });
  bandwidth("argmax", all, [&] { argmax(rows); });
  bandwidth("transpose", 2 * all, [&] { transpose(rows); });
  bandwidth("roll", 2 * all, [&] { roll(rows, 1); });
  bandwidth("concat", 2 * all, [&] { concat({slice(rows, 0, 0, half), slice(rows, 0, half, 2 * half)}, 1); });
  gemm(rounds, 20, 128, 128, true);
  gemm(rounds, 20, 512, 128, true);
  gemm(rounds, 100, 1024, 256, true);
  gemm(rounds, 1024, 1024, 1024, false);
  const Tensor few = uniform({8}, -1, 1, 1, 4), vector = uniform({20, 128}, -1, 1, 1, 5);
  small(rounds, "add of 8 numbers", [&] { few + few; });
  small(rounds, "tanh of 8 numbers", [&] { tanh(few); });
  small(rounds, "add of 20 x 128", [&] { vector + vector; });
  small(rounds, "tanh of 20 x 128", [&] { tanh(vector); });
  small(rounds, "sum of 20 x 128 over the last axis", [&] { sum(vector, {-1}); });
  return 0;
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  return reel::run_program("bench_ops", [&] { return reel::bench::run(argc, argv); });
}
