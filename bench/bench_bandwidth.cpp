// Do reductions and copies run as fast as memory gives? Bytes a second that each reads and writes, beside a triad
// (c = a + 2 b) of the same sizes.
//   build/bin/bench_bandwidth [--benchmark_filter=...]
#include <benchmark/benchmark.h>

#include "ops/ops.h"

using namespace reel;

namespace {

constexpr std::int64_t rows = 2048, columns = 4096;  // 32 MB of f32: beyond the caches

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

template <class T>
void triad(benchmark::State& state) {
  std::vector<T> a(rows * columns, T(1)), b(rows * columns, T(2)), c(rows * columns);
  for (auto _ : state) {
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + 2 * b[i];
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3 * sizeof(T) * c.size());
}

/// Reads all of x [rows, columns] once, writes what comes out.
template <class F>
void measure(const char* name, F f) {
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
  benchmark::RegisterBenchmark("triad/f32", triad<float>);
  benchmark::RegisterBenchmark("triad/f64", triad<double>);
  measure("sum_all", [](const Tensor& x) { return sum(x); });
  measure("sum_last", [](const Tensor& x) { return sum(x, {-1}); });
  measure("sum_first", [](const Tensor& x) { return sum(x, {0}); });
  measure("sum_middle", [](const Tensor& x) { return sum(reshape(x, {64, 32, columns}), {1}); });
  measure("sum_narrow", [](const Tensor& x) { return sum(reshape(x, {-1, 4}), {0}); });
  measure("max_last", [](const Tensor& x) { return max(x, {-1}); });
  measure("max_first", [](const Tensor& x) { return max(x, {0}); });
  measure("argmax_last", [](const Tensor& x) { return argmax(x); });
  measure("argmax_first", [](const Tensor& x) { return argmax(x, 0); });
  measure("cumsum_last", [](const Tensor& x) { return cumsum(x); });
  measure("cumsum_first", [](const Tensor& x) { return cumsum(x, 0); });
  measure("transpose", [](const Tensor& x) { return transpose(x); });
  measure("transpose_small", [](const Tensor& x) { return transpose(reshape(x, {-1, 64, 32})); });
  measure("flip", [](const Tensor& x) { return flip(x); });
  measure("softmax", [](const Tensor& x) { return softmax(x); });
  measure("normalize", [](const Tensor& x) { return normalize(x); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
