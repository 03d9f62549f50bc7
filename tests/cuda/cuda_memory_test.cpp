// A GPU whose memory lies in free lists: what libraries allocate by themselves finds room all the same.
#include <cuda_runtime_api.h>

#include "ops/fourier.h"
#include "ops/linalg.h"
#include "tests/support/check.h"
#include "tests/support/gpu.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("handles and plans of libraries find room where freed blocks hold all memory") {
  Backend* const gpu = gpu_or_skip("cuda");
  if (!gpu) return;
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  if (total > std::size_t{1} << 30) {
    MESSAGE("skipped: this GPU has too much memory to fill it");
    return;
  }
  const auto fill = [&] {
    std::vector<Tensor> all;
    for (const std::int64_t bytes : {1 << 20, 1 << 16}) {
      try {
        while (true) all.push_back(Tensor::empty({DType::boolean, {bytes}, gpu}));
      } catch (const OutOfMemory&) {
      }
    }
  };
  // Each is of 1 MiB, as its result is, so that this comes from a free list.
  const Tensor identity = eye(512, DType::f32, *gpu), ones = Tensor::full({512, 512}, 1, DType::f32, *gpu),
               signal = Tensor::full({256, 512}, 1, DType::c64, *gpu);
  fill();
  CHECK(gpu->memory().cached_bytes > total / 2);
  Tensor product, factor, spectrum;
  CHECK_NOTHROW(product = matmul(identity, ones));
  fill();
  CHECK_NOTHROW(factor = cholesky(identity));
  fill();
  CHECK_NOTHROW(spectrum = fft(signal));
  CHECK(difference(product, ones) == 0);
  CHECK(difference(factor, identity) == 0);
  CHECK(std::abs(elements(spectrum)[0] - 512.0) < 1e-3);
}
