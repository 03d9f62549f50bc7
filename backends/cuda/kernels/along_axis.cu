// argmax and cumsum: along a middle axis each thread handles a column; along the last axis the threads of a warp share
// a row.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_ops.h"

namespace reel::cuda {

namespace {

constexpr int warp = 32;
constexpr unsigned whole_warp = 0xffffffff;

template <class Rule, class T>
__global__ void places_of_columns(std::int64_t columns, std::int64_t n, std::int64_t inner, const T* in,
                                  std::int32_t* out) {
  for (std::int64_t c = thread(); c < columns; c += all_threads()) {
    const T* x = in + c / inner * n * inner + c % inner;
    T best = x[0];
    std::int64_t place = 0;
    for (std::int64_t j = 1; j < n; ++j) {
      const T v = x[j * inner];
      if (!Rule::beats(v, best)) continue;
      best = v;
      place = j;
    }
    out[c] = static_cast<std::int32_t>(place);
  }
}

/// One warp for each row. Ties go to the first index, whichever lane found it.
template <class Rule, class T>
__global__ void places_of_rows(std::int64_t rows, std::int64_t n, const T* in, std::int32_t* out) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (std::int64_t r = thread() / warp; r < rows; r += all_threads() / warp) {
    const T* x = in + r * n;
    std::int64_t place = lane < n ? lane : 0;
    T best = x[place];
    for (std::int64_t j = lane + warp; j < n; j += warp) {
      if (!Rule::beats(x[j], best)) continue;
      best = x[j];
      place = j;
    }
    for (int half = warp / 2; half > 0; half /= 2) {
      const T other = __shfl_down_sync(whole_warp, best, half);
      const long long other_place = __shfl_down_sync(whole_warp, static_cast<long long>(place), half);
      const bool better = Rule::beats(other, best), equal = !better && !Rule::beats(best, other);
      if (better || (equal && other_place < place)) {
        best = other;
        place = other_place;
      }
    }
    if (lane == 0) out[r] = static_cast<std::int32_t>(place);
  }
}

template <class T, class W>
__global__ void sums_of_columns(std::int64_t columns, std::int64_t n, std::int64_t inner, bool reverse, const T* in,
                                T* out) {
  for (std::int64_t c = thread(); c < columns; c += all_threads()) {
    const std::int64_t first = c / inner * n * inner + c % inner;
    W total(0);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t at = first + (reverse ? n - 1 - k : k) * inner;
      total = total + widened<W>(in[at]);
      out[at] = narrowed<T>(total);
    }
  }
}

/// The value of the lane `by` below, for lanes that have one.
template <class W>
__device__ W from_below(W x, int by) {
  if constexpr (is_complex_type<W>)
    return W(__shfl_up_sync(whole_warp, x.real(), by), __shfl_up_sync(whole_warp, x.imag(), by));
  else
    return __shfl_up_sync(whole_warp, x, by);
}
template <class W>
__device__ W from_lane(W x, int lane) {
  if constexpr (is_complex_type<W>)
    return W(__shfl_sync(whole_warp, x.real(), lane), __shfl_sync(whole_warp, x.imag(), lane));
  else
    return __shfl_sync(whole_warp, x, lane);
}

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

}  // namespace

void Cuda::argmax(const ArgmaxArgs& a) {
  const std::int64_t columns = a.outer * a.inner;
  if (columns == 0 || a.n == 0) return;
  const auto go = [&]<class Rule, class T>(Rule, std::type_identity<T>) {
    const T* in = static_cast<const T*>(a.in);
    if (a.inner == 1)
      places_of_rows<Rule><<<blocks_for(columns * warp), threads_per_block, 0, stream()>>>(columns, a.n, in, a.out);
    else
      places_of_columns<Rule>
          <<<blocks_for(columns), threads_per_block, 0, stream()>>>(columns, a.n, a.inner, in, a.out);
  };
  dispatch(a.dtype, [&]<class T>(std::type_identity<T> type) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argmax of complex numbers or bool");
    else
      a.largest ? go(MaxOp{}, type) : go(MinOp{}, type);
  });
  launched("argmax", {a.outer, a.n, a.inner});
}

void Cuda::cumsum(const CumsumArgs& a) {
  const std::int64_t columns = a.outer * a.inner;
  if (columns == 0 || a.n == 0) return;
  const auto go = [&]<class T>(std::type_identity<T>) {
    using W = wide<T>;
    const T* in = static_cast<const T*>(a.in);
    T* out = static_cast<T*>(a.out);
    if (a.inner == 1)
      sums_of_rows<T, W>
          <<<blocks_for(columns * warp), threads_per_block, 0, stream()>>>(columns, a.n, a.reverse, in, out);
    else
      sums_of_columns<T, W>
          <<<blocks_for(columns), threads_per_block, 0, stream()>>>(columns, a.n, a.inner, a.reverse, in, out);
  };
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("cumsum of bool");
    else
      go(std::type_identity<device_type<summand<T>>>{});
  });
  launched("cumsum", {a.outer, a.n, a.inner});
}

}  // namespace reel::cuda
