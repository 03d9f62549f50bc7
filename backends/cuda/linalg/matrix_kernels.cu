#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/linalg/matrix_kernels_by.h"

namespace reel::cuda {

namespace {

template <class Body>
__global__ void each_index(std::int64_t n, Body body) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) body(i);
}

struct Launch {
  cudaStream_t stream;
  std::function<void(std::int64_t)> launched;
  template <class Body>
  void operator()(std::int64_t n, Body body) const {
    if (n == 0) return;
    const int threads = n <= 4096 ? 32 : threads_per_block;  // small blocks spread few, long threads
    each_index<<<blocks_for(n, threads), threads, 0, stream>>>(n, body);
    launched(n);
  }
};

}  // namespace

std::unique_ptr<MatrixKernels> matrix_kernels(cudaStream_t stream, std::function<void(std::int64_t)> launched) {
  return std::make_unique<MatrixKernelsBy<Launch>>(Launch{stream, std::move(launched)});
}

}  // namespace reel::cuda
