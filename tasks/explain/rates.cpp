#include "tasks/explain/rates.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "ops/ops.h"

namespace reel::explain {

namespace {

/// The least seconds of f in a fifth of a second, and five calls at least.
double least(Backend& device, const std::function<Tensor()>& f) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300, spent = 0;
  for (int i = 0; i < 5 || spent < 0.2; ++i) {
    const auto start = Clock::now();
    const Tensor last = f();
    if (!device.runs_in_blocks()) last.item();  // waits for the device
    const double time = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, time);
    spent += time;
  }
  return best;
}

/// Bytes a second of a + b, each of so many bytes.
double stream_rate(Backend& device, std::int64_t bytes) {
  const std::int64_t n = bytes / 4, repeats = std::max<std::int64_t>(1, (std::int64_t{1} << 24) / bytes);
  const Tensor a = Tensor::zeros({n}, DType::f32, device), b = Tensor::zeros({n}, DType::f32, device);
  const double time = least(device, [&] {
    Tensor c;
    for (std::int64_t i = 0; i < repeats; ++i) c = a + b;
    return reshape(slice(c, 0, 0, 1), {});
  });
  return 3.0 * static_cast<double>(bytes * repeats) / time;
}

}  // namespace

Rates measure_rates(Backend& device, std::int64_t rows, std::int64_t size) {
  const NoGrad no_grad;
  const int threads = device.threads();
  device.set_threads(1);
  Rates rates{.device = device.name(), .rows = rows, .size = size};
  const Tensor a = uniform({rows, size}, -1, 1, 1, 1, DType::f32, device);
  const Tensor b = uniform({size, size}, -1, 1, 1, 2, DType::f32, device);
  Tensor c = matmul(a, b);
  const double flops = 2.0 * static_cast<double>(rows * size * size);
  const auto repeats = static_cast<int>(std::clamp(2e7 / flops, 1.0, 10000.0));
  GemmArgs product{};
  product.dtype = DType::f32;
  product.m = rows;
  product.n = product.k = size;
  product.batch = 1;
  product.a = a.data();
  product.b = b.data();
  product.c = c.data();
  const double time = least(device, [&] {
    for (int i = 0; i < repeats; ++i) device.gemm(product);  // as a loop calls it
    return reshape(slice(slice(c, 0, 0, 1), 1, 0, 1), {});
  });
  rates.products = flops * repeats / time;
  rates.cache = stream_rate(device, std::int64_t{1} << 16);
  rates.memory = stream_rate(device, std::int64_t{1} << 26);
  device.set_threads(threads);
  return rates;
}

}  // namespace reel::explain
