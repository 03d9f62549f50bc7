// argmax and argcummax: along a middle axis each thread handles a column; along the last axis the threads of a warp
// share a row.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_ops.h"
#include "backends/cuda/kernels/warp.h"

namespace reel::cuda {

namespace {

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

template <class Rule, class T>
__global__ void places_so_far_in_columns(std::int64_t columns, std::int64_t n, std::int64_t inner, const T* in,
                                         std::int32_t* out) {
  for (std::int64_t c = thread(); c < columns; c += all_threads()) {
    const std::int64_t first = c / inner * n * inner + c % inner;
    T best = in[first];
    std::int64_t place = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const T v = in[first + j * inner];
      if (!Rule::beats(best, v)) {
        best = v;
        place = j;
      }
      out[first + j * inner] = static_cast<std::int32_t>(place);
    }
  }
}

/// One warp for each row, 32 elements at a time.
template <class Rule, class T>
__global__ void places_so_far_in_rows(std::int64_t rows, std::int64_t n, const T* in, std::int32_t* out) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (std::int64_t r = thread() / warp; r < rows; r += all_threads() / warp) {
    T carried = in[r * n];
    std::int32_t carried_place = 0;
    for (std::int64_t j0 = 0; j0 < n; j0 += warp) {
      const std::int64_t j = j0 + lane;
      T best = j < n ? in[r * n + j] : carried;
      std::int32_t place = static_cast<std::int32_t>(j);
      for (int by = 1; by < warp; by *= 2) {
        const T other = from_below(best, by);
        const std::int32_t other_place = from_below(place, by);
        if (lane >= by && Rule::beats(other, best)) {
          best = other;
          place = other_place;
        }
      }
      if (Rule::beats(carried, best)) {
        best = carried;
        place = carried_place;
      }
      if (j < n) out[r * n + j] = place;
      carried = from_lane(best, warp - 1);
      carried_place = from_lane(place, warp - 1);
    }
  }
}

}  // namespace

void Cuda::argmax(const PlacesArgs& a) {
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

void Cuda::argcummax(const PlacesArgs& a) {
  const std::int64_t columns = a.outer * a.inner;
  if (columns == 0 || a.n == 0) return;
  const auto go = [&]<class Rule, class T>(Rule, std::type_identity<T>) {
    const T* in = static_cast<const T*>(a.in);
    if (a.inner == 1)
      places_so_far_in_rows<Rule>
          <<<blocks_for(columns * warp), threads_per_block, 0, stream()>>>(columns, a.n, in, a.out);
    else
      places_so_far_in_columns<Rule>
          <<<blocks_for(columns), threads_per_block, 0, stream()>>>(columns, a.n, a.inner, in, a.out);
  };
  dispatch(a.dtype, [&]<class T>(std::type_identity<T> type) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argcummax of complex numbers or bool");
    else
      a.largest ? go(MaxOp{}, type) : go(MinOp{}, type);
  });
  launched("argcummax", {a.outer, a.n, a.inner});
}

}  // namespace reel::cuda
