// Seconds of work on the CPU, or on a device that goes on by itself: such work is waited for by reading one number.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "ops/ops.h"

namespace reel::bench {

inline double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Do tensors that nobody places live on the CPU?
inline bool on_cpu() { return backend().name().starts_with("cpu"); }

/// Waits for all that was asked of the device so far; there is nothing to wait for on the CPU.
inline void wait() {
  if (!on_cpu()) Tensor::zeros({1}).item();
}

/// Seconds until all that f asks of the device is done.
inline double device_seconds(const std::function<void()>& f) {
  wait();
  return seconds([&] {
    f();
    wait();
  });
}

/// The bandwidth of a copy on the device of x, in bytes a second: the best of five.
inline double copy_rate(const Tensor& x) {
  Tensor copy = Tensor::empty(x.spec());
  double least = 1e300;
  for (int i = 0; i < 6; ++i) {
    const double time = device_seconds([&] { copy.assign(x); });
    if (i > 0) least = std::min(least, time);
  }
  return 2 * static_cast<double>(x.bytes()) / least;
}

}  // namespace reel::bench
