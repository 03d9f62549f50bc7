// Gathers and scatters by index. Sums run over the indices in order, whichever thread adds them, so that every run
// gives the same bits; out-of-range indices are recorded as faults (faults.h).
#include "backends/cuda/kernels/check_index.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_ops.h"

namespace reel::cuda {

namespace {

/// Gathers elements as raw words of their size.
template <class Word>
__global__ void gather(std::int64_t all, std::int64_t count, std::int64_t rows, std::int64_t width,
                       const std::int32_t* index, const Word* in, Word* out, FaultSlot* fault) {
  for (std::int64_t e = thread(); e < all; e += all_threads()) {
    const std::int64_t k = e % width, i = e / width % count, o = e / width / count;
    if (good(index, i, rows, fault)) out[e] = in[(o * rows + index[i]) * width + k];
  }
}

/// Checks indices that no other kernel checks.
__global__ void look(std::int64_t count, std::int64_t rows, const std::int32_t* index, FaultSlot* fault) {
  for (std::int64_t i = thread(); i < count; i += all_threads()) good(index, i, rows, fault);
}

template <class Word>
__global__ void take(std::int64_t all, std::int64_t n, std::int64_t m, std::int64_t inner, const std::int32_t* index,
                     const Word* in, Word* out, FaultSlot* fault) {
  for (std::int64_t e = thread(); e < all; e += all_threads()) {
    const std::int64_t i = e % inner, o = e / inner / m;
    if (good(index, e, n, fault)) out[e] = in[(o * n + index[e]) * inner + i];
  }
}

/// One thread for each column (o, i), which adds the column's m elements in order.
template <class T>
__global__ void put(std::int64_t columns, std::int64_t n, std::int64_t m, std::int64_t inner, const std::int32_t* index,
                    const T* in, T* out, FaultSlot* fault) {
  for (std::int64_t c = thread(); c < columns; c += all_threads()) {
    const std::int64_t i = c % inner, o = c / inner;
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t e = (o * m + j) * inner + i;
      if (!good(index, e, n, fault)) continue;
      T& to = out[(o * n + index[e]) * inner + i];
      to = to + in[e];
    }
  }
}

/// One block for each row of the result and each part of the indices: it collects the positions that hold its row, in
/// order and a few at a time, then its threads add the elements there. With one part it writes `out` [outer, rows,
/// width]; with more, `parts` [splits, outer, rows, width], which must be zero.
template <class T, class W>
__global__ void sum_segments(std::int64_t outer, std::int64_t count, std::int64_t limit, std::int64_t rows,
                             std::int64_t width, std::int64_t splits, std::int64_t per_split, const std::int32_t* index,
                             const T* in, T* out, W* parts, FaultSlot* fault) {
  __shared__ std::int32_t found[threads_per_block];
  __shared__ int before[threads_per_block / 32 + 1];
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, mine = t / 32;
  for (std::int64_t b = blockIdx.x; b < rows * splits; b += gridDim.x) {
    const std::int64_t row = b % rows, split = b / rows, end = min(count, (split + 1) * per_split);
    for (std::int64_t i0 = split * per_split; i0 < end; i0 += threads_per_block) {
      const std::int64_t place = i0 + t;
      bool here = false;
      if (place < end) {
        here = index[place] == row;
        if (row == 0) good(index, place, limit, fault);  // the first block of a part checks for all
      }
      const unsigned votes = __ballot_sync(0xffffffff, here);
      if (lane == 0) before[mine + 1] = __popc(votes);
      __syncthreads();
      if (t == 0) {
        before[0] = 0;
        for (int w = 0; w < threads_per_block / 32; ++w) before[w + 1] += before[w];
      }
      __syncthreads();
      if (here) found[before[mine] + __popc(votes & ((1U << lane) - 1))] = static_cast<std::int32_t>(place - i0);
      __syncthreads();
      const int several = before[threads_per_block / 32];
      for (std::int64_t e = t; several > 0 && e < outer * width; e += threads_per_block) {
        const std::int64_t o = e / width, k = e % width;
        W sum(0);
        for (int f = 0; f < several; ++f) sum = sum + widened<W>(in[(o * count + i0 + found[f]) * width + k]);
        const std::int64_t at = (o * rows + row) * width + k;
        if (splits > 1) {
          W& to = parts[split * outer * rows * width + at];
          to = to + sum;
        } else {
          out[at] = narrowed<T>(widened<W>(out[at]) + sum);
        }
      }
      __syncthreads();
    }
  }
}

template <class T, class W>
__global__ void add_parts(std::int64_t n, std::int64_t splits, const W* parts, T* out) {
  for (std::int64_t e = thread(); e < n; e += all_threads()) {
    W sum(0);
    for (std::int64_t s = 0; s < splits; ++s) sum = sum + parts[s * n + e];
    out[e] = narrowed<T>(widened<W>(out[e]) + sum);
  }
}

}  // namespace

void Cuda::check_indices(const char* kernel, const std::int32_t* index, std::int64_t count, std::int64_t rows) {
  look<<<blocks_for(count), threads_per_block, 0, stream()>>>(count, rows, index, faults_->slot({kernel, rows}));
  launched("check_indices", kernel, {count, rows});
  if (options_.sync) faults_->check_all(stream(), true);
}

void Cuda::gather_rows(const RowsArgs& a) {
  const std::int64_t all = a.outer * a.count * a.width;
  if (a.count == 0) return;
  FaultSlot* const fault = faults_->slot({"gather_rows", a.rows});
  dispatch(a.dtype, [&]<class E>(std::type_identity<E>) {
    using T = device_type<E>;
    const auto go = [&]<class Word>(Word, std::int64_t width) {
      const std::int64_t words = a.outer * a.count * width;
      gather<<<blocks_for(words), threads_per_block, 0, stream()>>>(
          words, a.count, a.rows, width, a.index, static_cast<const Word*>(a.in), static_cast<Word*>(a.out), fault);
    };
    constexpr std::int64_t per = 16 / sizeof(T);
    if (a.width % per == 0 && aligned(a.in, 16) && aligned(a.out, 16))
      go(uint4{}, a.width / per);
    else
      go(T{}, a.width);
  });
  if (all == 0) check_indices("gather_rows", a.index, a.count, a.rows);
  launched("gather_rows", {a.outer, a.count, a.rows, a.width});
  if (options_.sync) faults_->check_all(stream(), true);
}

void Cuda::segment_sum(const RowsArgs& a) {
  if (a.dtype == DType::boolean) unsupported("segment_sum of bool");
  if (a.count == 0) return;
  FaultSlot* const fault = faults_->slot({"segment_sum", a.rows});
  dispatch(a.dtype, [&]<class E>(std::type_identity<E>) {
    if constexpr (!std::is_same_v<E, bool>) {
      using T = device_type<summand<E>>;
      using W = wide<T>;
      // Most indices may be of one row, as the pixels of a digit are black: without parts its block would add them all.
      constexpr std::int64_t blocks = 8192, least = 1024;    // fewest indices that pay for a second part
      constexpr std::int64_t most = (64 << 20) / sizeof(W);  // elements of all parts
      const std::int64_t rows = std::max<std::int64_t>(a.rows, 1), n = a.outer * a.rows * a.width;
      const std::int64_t fit = std::max<std::int64_t>(most / std::max<std::int64_t>(n, 1), 1);
      std::int64_t splits = std::clamp<std::int64_t>(std::min(blocks / rows, fit), 1, (a.count + least - 1) / least);
      const std::int64_t per_split = (a.count + splits - 1) / splits;
      splits = (a.count + per_split - 1) / per_split;
      StoragePtr parts;
      if (splits > 1) {
        const std::size_t bytes = static_cast<std::size_t>(splits * n) * sizeof(W);
        parts = scratch(bytes);
        check(cudaMemsetAsync(parts->data, 0, bytes, stream()), "segment_sum");
      }
      W* const room = parts ? reinterpret_cast<W*>(parts->data) : nullptr;
      T* const out = static_cast<T*>(a.out);
      // Without rows there is still one block for each part, which reports that no index is valid.
      sum_segments<T, W><<<blocks_for(rows * splits, 1), threads_per_block, 0, stream()>>>(
          a.outer, a.count, a.rows, rows, a.rows == 0 ? 0 : a.width, splits, per_split, a.index,
          static_cast<const T*>(a.in), out, room, fault);
      if (splits > 1) add_parts<<<blocks_for(n), threads_per_block, 0, stream()>>>(n, splits, room, out);
    }
  });
  launched("segment_sum", {a.outer, a.count, a.rows, a.width});
  if (options_.sync) faults_->check_all(stream(), true);
}

void Cuda::take_along(const TakeArgs& a) {
  const std::int64_t all = a.outer * a.m * a.inner;
  if (all == 0) return;
  FaultSlot* const fault = faults_->slot({"take_along", a.n});
  dispatch(a.dtype, [&]<class E>(std::type_identity<E>) {
    using T = device_type<E>;
    take<<<blocks_for(all), threads_per_block, 0, stream()>>>(
        all, a.n, a.m, a.inner, a.index, static_cast<const T*>(a.in), static_cast<T*>(a.out), fault);
  });
  launched("take_along", {a.outer, a.n, a.m, a.inner});
  if (options_.sync) faults_->check_all(stream(), true);
}

void Cuda::scatter_add(const TakeArgs& a) {
  if (a.dtype == DType::boolean) unsupported("scatter_add of bool");
  const std::int64_t columns = a.outer * a.inner;
  if (columns == 0 || a.m == 0) return;
  FaultSlot* const fault = faults_->slot({"scatter_add", a.n});
  dispatch(a.dtype, [&]<class E>(std::type_identity<E>) {
    if constexpr (!std::is_same_v<E, bool>) {
      using T = device_type<summand<E>>;
      put<<<blocks_for(columns), threads_per_block, 0, stream()>>>(
          columns, a.n, a.m, a.inner, a.index, static_cast<const T*>(a.in), static_cast<T*>(a.out), fault);
    }
  });
  launched("scatter_add", {a.outer, a.n, a.m, a.inner});
  if (options_.sync) faults_->check_all(stream(), true);
}

}  // namespace reel::cuda
