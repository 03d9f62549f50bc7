// Sums of squares of many arrays in two kernels: over chunks of all arrays, then over each array's chunks. The order
// depends on sizes only.
#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/plan.h"
#include "backends/cuda/kernels/reduce_ops.h"

namespace reel::cuda {

namespace {

/// Passed as a kernel argument, so nothing has to stay alive in device memory.
template <class T>
struct Arrays {
  Chunks chunks;
  const T* x[Chunks::most];
  double* out[Chunks::most];
};

/// Sums the values of a block's threads; only thread 0 gets the result.
__device__ double sum_of_block(double mine) {
  __shared__ double room[threads_per_block];
  const int me = static_cast<int>(threadIdx.x);
  room[me] = mine;
  reduce_group<SumOp>(room, 0, 1, me, threads_per_block);
  return room[me];
}

template <class T>
__global__ void squares_of_chunks(const __grid_constant__ Arrays<T> arrays, double* parts) {
  for (std::int64_t chunk = blockIdx.x; chunk < arrays.chunks.count(); chunk += gridDim.x) {
    const int k = arrays.chunks.array(chunk);
    const std::int64_t last = arrays.chunks.last(chunk, k);
    double sum = 0;
    for (std::int64_t i = arrays.chunks.first(chunk, k) + threadIdx.x; i < last; i += threads_per_block) {
      const auto x = static_cast<double>(arrays.x[k][i]);
      sum += x * x;
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) parts[chunk] = sum;
  }
}

/// One block for each array.
template <class T>
__global__ void sum_of_chunks(const __grid_constant__ Arrays<T> arrays, const double* parts) {
  const auto k = static_cast<int>(blockIdx.x);
  double sum = 0;
  for (std::int64_t i = arrays.chunks.begin(k) + threadIdx.x; i < arrays.chunks.end[k]; i += threads_per_block)
    sum += parts[i];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *arrays.out[k] = sum;
}

}  // namespace

void Cuda::sums_of_squares(const SquaresArgs& args) {
  if (!is_floating(args.dtype)) unsupported("sums_of_squares of complex numbers or integers");
  const auto go = [&]<class T>(T, std::span<const SquaresOf> some) {
    Arrays<T> arrays{};
    for (const SquaresOf& a : some) {
      const int k = arrays.chunks.arrays;
      arrays.x[k] = static_cast<const T*>(a.x), arrays.out[k] = a.out;
      arrays.chunks.push(a.n);
    }
    const std::int64_t chunks = arrays.chunks.count();
    const StoragePtr room = scratch(static_cast<std::size_t>(std::max<std::int64_t>(chunks, 1)) * sizeof(double));
    auto* const parts = reinterpret_cast<double*>(room->data);
    squares_of_chunks<<<blocks_for(chunks, 1), threads_per_block, 0, stream()>>>(arrays, parts);
    sum_of_chunks<<<static_cast<unsigned>(some.size()), threads_per_block, 0, stream()>>>(arrays, parts);
    launched("sums_of_squares", {std::ssize(some)});
  };
  in_launches(args.of, [&](std::span<const SquaresOf> some) {
    dispatch_floating(args.dtype, [&]<class T>(std::type_identity<T>) { go(T{}, some); });
  });
}

}  // namespace reel::cuda
