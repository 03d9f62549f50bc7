// argsort: a network of comparisons on the indices of a column, by one block.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/shared/order.h"

namespace reel::cuda {

namespace {

constexpr int most_threads = 1024;

/// Bitonic sorting (Batcher, 1968) in the form where each comparison leaves the earlier element at the lower index, so
/// that n need not be a power of two: elements beyond the end would stay there. `order` is [outer, n, inner]; its first
/// `count` go to out, unless it is out.
template <class T>
__global__ void sort_columns(std::int64_t columns, std::int64_t n, std::int64_t inner, std::int64_t count,
                             bool descending, const T* in, std::int32_t* order, std::int32_t* out) {
  for (std::int64_t c = blockIdx.x; c < columns; c += gridDim.x) {
    const T* x = in + c / inner * n * inner + c % inner;
    std::int32_t* at = order + c / inner * n * inner + c % inner;
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) at[j * inner] = static_cast<std::int32_t>(j);
    __syncthreads();
    const auto compare = [&](std::int64_t low, std::int64_t high) {
      if (high >= n) return;
      std::int32_t &i = at[low * inner], &j = at[high * inner];
      if (comes_before(descending, x[i * inner], i, x[j * inner], j)) return;
      const std::int32_t larger = i;
      i = j;
      j = larger;
    };
    for (std::int64_t half = 1; half < n; half *= 2) {  // sorted runs of `half` become runs of twice that
      const std::int64_t pairs = (n + 2 * half - 1) / (2 * half) * half;
      for (std::int64_t p = threadIdx.x; p < pairs; p += blockDim.x) {  // with the mirror image of the second run
        const std::int64_t run = p / half * 2 * half, k = p % half;
        compare(run + k, run + 2 * half - 1 - k);
      }
      __syncthreads();
      for (std::int64_t apart = half / 2; apart > 0; apart /= 2) {
        for (std::int64_t p = threadIdx.x; p < pairs; p += blockDim.x) {
          const std::int64_t low = p / apart * 2 * apart + p % apart;
          compare(low, low + apart);
        }
        __syncthreads();
      }
    }
    if (order == out) continue;
    std::int32_t* const first = out + c / inner * count * inner + c % inner;
    for (std::int64_t j = threadIdx.x; j < count; j += blockDim.x) first[j * inner] = at[j * inner];
  }
}

}  // namespace

void Cuda::argsort(const PlacesArgs& a) {
  const std::int64_t columns = a.outer * a.inner;
  if (columns == 0 || a.count == 0) return;
  StoragePtr room;
  if (a.count < a.n) room = scratch(static_cast<std::size_t>(columns * a.n) * sizeof(std::int32_t));
  std::int32_t* const order = room ? reinterpret_cast<std::int32_t*>(room->data) : a.out;
  const auto threads = static_cast<unsigned>(power_of_two(a.n / 2, most_threads));
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argsort of complex numbers or bool");
    else
      sort_columns<T><<<blocks_for(columns, 1), threads, 0, stream()>>>(columns, a.n, a.inner, a.count, a.largest,
                                                                        static_cast<const T*>(a.in), order, a.out);
  });
  launched("argsort", {a.outer, a.n, a.inner});
}

}  // namespace reel::cuda
