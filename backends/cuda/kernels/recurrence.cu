// recurrence: along a middle axis each thread handles a column; along the last axis the threads of a warp share a row.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_ops.h"
#include "backends/cuda/kernels/warp.h"

namespace reel::cuda {

namespace {

/// One warp for each row, 32 elements at a time.
template <class T, class W>
__global__ void sums_of_rows(std::int64_t rows, std::int64_t n, bool reverse, const T* in, T* out) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (std::int64_t r = thread() / warp; r < rows; r += all_threads() / warp) {
    W carried(0);
    for (std::int64_t k0 = 0; k0 < n; k0 += warp) {
      const std::int64_t k = k0 + lane, at = r * n + (reverse ? n - 1 - k : k);
      W sum = k < n ? widened<W>(in[at]) : W(0);
      for (int by = 1; by < warp; by *= 2) {
        const W below = from_below(sum, by);
        if (lane >= by) sum = below + sum;
      }
      sum = carried + sum;
      if (k < n) out[at] = narrowed<T>(sum);
      carried = from_lane(sum, warp - 1);
    }
  }
}

template <class T, class W>
__global__ void recur_columns(std::int64_t columns, std::int64_t n, std::int64_t inner, bool reverse, const T* factors,
                              const T* terms, T* out) {
  for (std::int64_t c = thread(); c < columns; c += all_threads()) {
    const std::int64_t first = c / inner * n * inner + c % inner;
    W y(terms ? 0 : 1);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t at = first + (reverse ? n - 1 - k : k) * inner;
      if (factors) y = widened<W>(factors[at]) * y;
      if (terms) y = y + widened<W>(terms[at]);
      out[at] = narrowed<T>(y);
    }
  }
}

/// One warp for each row: it reads 32 elements together, and each lane takes the 32 steps. In a tree, products of
/// factors might overflow that meet a 0 here.
template <class T, class W>
__global__ void recur_rows(std::int64_t rows, std::int64_t n, bool reverse, const T* factors, const T* terms, T* out) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (std::int64_t r = thread() / warp; r < rows; r += all_threads() / warp) {
    W y(terms ? 0 : 1);
    for (std::int64_t k0 = 0; k0 < n; k0 += warp) {
      const std::int64_t k = k0 + lane, place = r * n + (reverse ? n - 1 - k : k);
      const W factor = k < n ? widened<W>(factors[place]) : W(1);
      const W term = terms && k < n ? widened<W>(terms[place]) : W(0);
      W mine(0);
      for (int step = 0; step < warp; ++step) {
        y = from_lane(factor, step) * y + from_lane(term, step);
        if (step == lane) mine = y;
      }
      if (k < n) out[place] = narrowed<T>(mine);
    }
  }
}

}  // namespace

void Cuda::recurrence(const RecurrenceArgs& a) {
  const std::int64_t columns = a.outer * a.inner;
  if (columns == 0 || a.n == 0) return;
  const auto go = [&]<class T>(std::type_identity<T>) {
    using W = wide<T>;
    const T *factors = static_cast<const T*>(a.factors), *terms = static_cast<const T*>(a.terms);
    T* out = static_cast<T*>(a.out);
    const unsigned by_warps = blocks_for(columns * warp), by_threads = blocks_for(columns);
    if (a.inner > 1)
      recur_columns<T, W>
          <<<by_threads, threads_per_block, 0, stream()>>>(columns, a.n, a.inner, a.reverse, factors, terms, out);
    else if (factors)
      recur_rows<T, W><<<by_warps, threads_per_block, 0, stream()>>>(columns, a.n, a.reverse, factors, terms, out);
    else
      sums_of_rows<T, W><<<by_warps, threads_per_block, 0, stream()>>>(columns, a.n, a.reverse, terms, out);
  };
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("recurrence of bool");
    else
      go(std::type_identity<device_type<summand<T>>>{});
  });
  launched("recurrence", {a.outer, a.n, a.inner});
}

}  // namespace reel::cuda
