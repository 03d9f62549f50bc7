// What an op costs beside what the machine can do, in one run: large elementwise ops and reductions as a share of the
// bandwidth of a triad, products as a share of plain cblas, and the cost of a small op. One thread. On another device
// (--device) the bandwidth is that of a copy there, and products are beside nothing.
#include <cblas.h>

#include "bench/clock.h"
#include "tasks/harness/run.h"

namespace reel::bench {
namespace {

/// The median times of two functions run in turn, so that a busy machine slows both.
std::pair<double, double> side_by_side(const std::function<void()>& f, const std::function<void()>& g) {
  constexpr int rounds = 15;
  std::vector<double> a, b;
  f();
  g();
  for (int i = 0; i < rounds; ++i) {
    a.push_back(device_seconds(f));
    b.push_back(device_seconds(g));
  }
  return {median(a), median(b)};
}

constexpr std::int64_t large = 1 << 24;

/// Bytes a second of `op`, which moves `bytes`, against those of a triad a = b + s c of three arrays, or on another
/// device, where so short a work is done many times, of a copy.
void bandwidth(const char* name, double bytes, const std::function<void()>& op) {
  static const bool cpu = on_cpu();
  static const int times = cpu ? 1 : 50;
  static std::vector<float> a(cpu ? large : 0), b(a.size(), 1), c(a.size(), 2);
  static const Tensor from = Tensor::zeros({cpu ? 1 : large});
  static Tensor to = Tensor::empty(from.spec());
  const auto [own, other] = side_by_side(
      [&] {
        for (int i = 0; i < times; ++i) op();
      },
      [] {
        for (int i = 0; !cpu && i < times; ++i) to.assign(from);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] + 3.0F * c[i];
      });
  const double rate = bytes * times / own, bound = (cpu ? 12.0 : 8.0) * large * times / other;
  fmt::print("{:<34} {:6.1f} GB/s  {} {:6.1f} GB/s  share {:4.0f} %\n", name, rate / 1e9, cpu ? "triad" : "copy",
             bound / 1e9, 100 * rate / bound);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b) {
  const Tensor a = uniform({m, k}, -1, 1, 1, 1);
  const Tensor b = uniform(transpose_b ? Shape{n, k} : Shape{k, n}, -1, 1, 1, 2);
  const bool beside_cblas = on_cpu();
  std::vector<float> c(static_cast<std::size_t>(m * n));
  const auto repeat = static_cast<int>(std::max<std::int64_t>(1, (beside_cblas ? 20000000 : 2000000000) / (m * n * k)));
  const auto [own, plain] = side_by_side(
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
  fmt::print("matmul {:>5} x {:>4} x {:>4}{:<12} {:6.1f} GFLOP/s", m, n, k, transpose_b ? " transposed" : "",
             flops / own / 1e9);
  if (beside_cblas) fmt::print("  cblas {:6.1f}  share {:4.0f} %", flops / plain / 1e9, 100 * plain / own);
  fmt::print("\n");
}

void small(const char* name, const std::function<void()>& op) {
  constexpr int times = 20000;
  const auto [own, same] = side_by_side(
      [&] {
        for (int i = 0; i < times; ++i) op();
      },
      [] {});
  fmt::print("{:<34} {:6.0f} ns\n", name, own / times * 1e9);
}

int run(int argc, const char* const* argv) {
  std::string device = "cpu";
  Options options("bench_ops", "What an op costs, beside what the machine can do. One thread.");
  add_device(options, device);
  options.parse(argc, argv);
  fmt::print("device {}\n", use_device(device).name());
  backend().set_threads(1);
  const Tensor x = uniform({large}, 0.1, 1, 1, 1), y = uniform({large}, 0.1, 1, 1, 2), rows = reshape(x, {-1, 1024});
  const Tensor row = uniform({1024}, 0, 1, 1, 3);
  constexpr double all = 4.0 * large;
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
  bandwidth("concat", 2 * all, [&] { concat({slice(rows, 0, 0, 8192), slice(rows, 0, 8192, 16384)}, 1); });
  gemm(20, 128, 128, true);
  gemm(20, 512, 128, true);
  gemm(100, 1024, 256, true);
  gemm(1024, 1024, 1024, false);
  const Tensor few = uniform({8}, -1, 1, 1, 4), vector = uniform({20, 128}, -1, 1, 1, 5);
  small("add of 8 numbers", [&] { few + few; });
  small("tanh of 8 numbers", [&] { tanh(few); });
  small("add of 20 x 128", [&] { vector + vector; });
  small("tanh of 20 x 128", [&] { tanh(vector); });
  small("sum of 20 x 128 over the last axis", [&] { sum(vector, {-1}); });
  return 0;
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  return reel::run_program("bench_ops", [&] { return reel::bench::run(argc, argv); });
}
