// Do reductions and copies run as fast as memory gives? Bytes a second that each reads and writes, beside a triad
// (c = a + 2 b) of the same sizes.
//   build/bin/bench_bandwidth [--filter REGEX] [--budget 0.5]
#include "bench/benchmarks.h"
#include "ops/ops.h"

using namespace reel;

namespace {

constexpr std::int64_t rows = 2048;

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

template <class T>
void triad(benchmark::State& state, std::int64_t columns) {
  std::vector<T> a(static_cast<std::size_t>(rows * columns), T(1)), b(a.size(), T(2)), c(a.size());
  for (auto _ : state) {
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + 2 * b[i];
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3 * sizeof(T) * c.size());
}

/// Reads all of x [rows, columns] once, writes what comes out.
template <class F>
void measure(const char* name, std::int64_t columns, F f) {
  for (DType dtype : {DType::f32, DType::f64}) {
    benchmark::RegisterBenchmark(fmt::format("{}/{}", name, name_of(dtype)).c_str(), [=](benchmark::State& state) {
      const Tensor x = normal({rows, columns}, 0, 1, 1, 1, dtype);
      std::size_t bytes = 0;
      for (auto _ : state) {
        const Tensor y = f(x);
        benchmark::DoNotOptimize(y.data());
        bytes = x.bytes() + y.bytes();
      }
      count_bytes(state, bytes);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("bench_bandwidth", [&] {
    std::int64_t columns = 4096;
    Options options("bench_bandwidth", "Bytes a second of reductions and copies, beside those of a triad.");
    options.add("columns", columns, "of the matrix of 2048 rows; 4096 are 32 MB of f32, beyond the caches", "Run",
                Bounds{.low = 1, .high = 1 << 20});
    return bench::run_benchmarks(argc, argv, options, [&] {
      benchmark::RegisterBenchmark("triad/f32", triad<float>, columns);
      benchmark::RegisterBenchmark("triad/f64", triad<double>, columns);
      measure("sum_all", columns, [](const Tensor& x) { return sum(x); });
      measure("sum_last", columns, [](const Tensor& x) { return sum(x, {-1}); });
      measure("sum_first", columns, [](const Tensor& x) { return sum(x, {0}); });
      measure("sum_middle", columns, [](const Tensor& x) { return sum(reshape(x, {64, 32, x.dim(1)}), {1}); });
      measure("sum_narrow", columns, [](const Tensor& x) { return sum(reshape(x, {-1, 4}), {0}); });
      measure("max_last", columns, [](const Tensor& x) { return max(x, {-1}); });
      measure("max_first", columns, [](const Tensor& x) { return max(x, {0}); });
      measure("argmax_last", columns, [](const Tensor& x) { return argmax(x); });
      measure("argmax_first", columns, [](const Tensor& x) { return argmax(x, 0); });
      measure("cumsum_last", columns, [](const Tensor& x) { return cumsum(x); });
      measure("cumsum_first", columns, [](const Tensor& x) { return cumsum(x, 0); });
      measure("cumprod_last", columns, [](const Tensor& x) { return cumprod(x); });
      measure("argsort_last", columns, [](const Tensor& x) { return argsort(x); });
      measure("transpose", columns, [](const Tensor& x) { return transpose(x); });
      measure("transpose_small", columns, [](const Tensor& x) { return transpose(reshape(x, {-1, 64, 32})); });
      measure("flip", columns, [](const Tensor& x) { return flip(x); });
      measure("softmax", columns, [](const Tensor& x) { return softmax(x); });
      measure("standardize", columns, [](const Tensor& x) { return standardize(x); });
    });
  });
}
