// What the CPU gives, in the run it is compared with: products by plain cblas, and a triad.
#pragma once
#include <cblas.h>

#include <cmath>
#include <thread>

#include "bench/clock.h"
#include "engine/scan/scan.h"

namespace reel::bench {

/// Runs f(0), ..., f(threads - 1) at the same time, again and again for a fifth of a second and five times at least,
/// and returns the least time of a round: a bound wants the best that the machine does.
inline double together(int threads, const std::function<void(int)>& f) {
  double least = 1e300, spent = 0;
  for (int i = 0; i < 5 || spent < 0.2; ++i) {
    const double time = seconds([&] {
      std::vector<std::thread> others;
      for (int k = 1; k < threads; ++k) others.emplace_back(f, k);
      f(0);
      for (std::thread& t : others) t.join();
    });
    least = std::min(least, time);
    spent += time;
  }
  return least;
}

/// Operations a second of [rows, n] x [n, n], rows shared out to threads that each call cblas on their own; the weights
/// as they lie or transposed, whichever is faster (OpenBLAS has a kernel for small products of one form only).
inline double gemm_rate(std::int64_t rows, std::int64_t n, int threads) {
  openblas_set_num_threads(1);
  const std::int64_t own = std::max<std::int64_t>(1, (rows + threads - 1) / threads);
  const auto m = static_cast<int>(own), k = static_cast<int>(n);
  const auto repeat = static_cast<int>(std::max<std::int64_t>(1, 100'000'000 / (own * n * n)));
  const auto size = static_cast<std::size_t>(own * n);
  std::vector<float> a(size * static_cast<std::size_t>(threads), 1), c(a.size()), b(static_cast<std::size_t>(n * n), 1);
  double time = 1e300;
  for (const CBLAS_TRANSPOSE form : {CblasNoTrans, CblasTrans}) {
    time =
        std::min(time, together(threads, [&](int thread) {
                   const std::size_t at = size * static_cast<std::size_t>(thread);
                   for (int i = 0; i < repeat; ++i)
                     cblas_sgemm(CblasRowMajor, CblasNoTrans, form, m, k, k, 1, &a[at], k, b.data(), k, 0, &c[at], k);
                 }));
  }
  return 2.0 * static_cast<double>(own * n * n) * repeat * threads / time;
}

/// The same by Reel's own products (libxsmm), each thread with rows of its own: one by one, or in a loop over time,
/// which copies b once for all steps.
inline double own_gemm_rate(std::int64_t rows, std::int64_t n, int threads) {
  backend().set_threads(1);
  backend().set_shards(1);
  const std::int64_t own = std::max<std::int64_t>(1, (rows + threads - 1) / threads);
  const std::int64_t repeat = std::max<std::int64_t>(1, 100'000'000 / (own * n * n));
  Tensors a;
  for (int k = 0; k < threads; ++k) a.push_back(uniform({own, n}, -1, 1, 1, 1));
  const double size = std::sqrt(3 / static_cast<double>(n));  // products of products stay as large as a
  const Tensor b = uniform({n, n}, -size, size, 1, 2);
  const auto step = [&](const Tensors& state, const Tensors&) { return Next{{matmul(state[0], b)}, {}}; };
  const double one_by_one = together(threads, [&](int thread) {
    for (std::int64_t i = 0; i < repeat; ++i) matmul(a[static_cast<std::size_t>(thread)], b);
  });
  const double in_loop =
      together(threads, [&](int thread) { scan(step, {a[static_cast<std::size_t>(thread)]}, {}, {.length = repeat}); });
  backend().set_shards(0);
  return 2.0 * static_cast<double>(own * n * n * repeat) * threads / std::min(one_by_one, in_loop);
}

/// Operations a second of the same product on the device of new tensors: many of them, one after the other.
inline double matmul_rate(std::int64_t rows, std::int64_t n) {
  const Tensor a = uniform({rows, n}, -1, 1, 1, 1), b = uniform({n, n}, -1, 1, 1, 2);
  const auto seconds_of = [&](int repeat) {
    return device_seconds([&] {
             for (int k = 0; k < repeat; ++k) matmul(a, b);
           }) /
           repeat;
  };
  seconds_of(1);  // warms up
  double least = seconds_of(1);
  const int repeat = static_cast<int>(std::clamp(0.01 / least, 1.0, 1000.0));
  for (int i = 0; i < 5 && least < 0.1; ++i) least = std::min(least, seconds_of(repeat));
  return 2.0 * static_cast<double>(rows * n * n) / least;
}

/// Bytes a second of a = b + s c, three arrays well beyond the caches.
inline double triad_rate(int threads) {
  constexpr std::size_t size = 1 << 24;
  static std::vector<float> a(size), b(size, 1), c(size, 2);
  const std::size_t share = size / static_cast<std::size_t>(threads);
  const double time = together(threads, [&](int thread) {
    const std::size_t first = share * static_cast<std::size_t>(thread);
    for (std::size_t i = first; i < first + share; ++i) a[i] = b[i] + 3.0F * c[i];
  });
  return 3.0 * sizeof(float) * static_cast<double>(share) * threads / time;
}

}  // namespace reel::bench
