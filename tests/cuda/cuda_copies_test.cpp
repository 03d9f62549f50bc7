// Copies and zeros on the GPU, byte for byte: short ones are kernels, long ones the runtime's.
#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/tensor.h"
#include "tests/support/check.h"
#include "tests/support/gpu.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("copies and zeros, short and long, wherever they begin") {
  Backend* const gpu = gpu_or_skip("cuda");
  if (!gpu) return;
  for (const DType dtype : {DType::boolean, DType::f32, DType::c128}) {
    for (const std::int64_t n : {1, 3, 16, 4096, 66'000}) {
      for (const std::int64_t first : {0, 1, 2, 3}) {
        CAPTURE(name_of(dtype));
        CAPTURE(n);
        CAPTURE(first);
        const auto size = static_cast<std::int64_t>(size_of(dtype)), all = (n + 8) * size;
        std::vector<std::uint8_t> from(static_cast<std::size_t>(all)), to(from.size(), 7), got(from.size());
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i % 251 + 1);
        Tensor a = Tensor::empty({DType::boolean, {all}, gpu}), b = Tensor::empty({DType::boolean, {all}, gpu});
        gpu->write(a.data(), from.data(), from.size());
        gpu->write(b.data(), to.data(), to.size());
        auto* const at = static_cast<std::byte*>(b.data());
        StridedLoop<2> loop;
        loop.rank = 1, loop.dims[0] = n, loop.strides[0] = {1, 1};
        gpu->copy({dtype, loop, static_cast<const std::byte*>(a.data()) + first * size, at + 4 * size});
        gpu->read(got.data(), b.data(), got.size());
        std::copy_n(from.begin() + first * size, n * size, to.begin() + 4 * size);
        CHECK(got == to);
        gpu->fill({dtype, n, 0.0, at + first * size});
        gpu->read(got.data(), b.data(), got.size());
        std::fill_n(to.begin() + first * size, n * size, std::uint8_t{0});
        CHECK(got == to);
      }
    }
  }
}

TEST_CASE("two GPUs of one process take turns") {
  Backend* const first = gpu_or_skip("cuda");
  if (!first) return;
  const Tensor a = Tensor::full({5}, 1, DType::f32, *first);
  Backend* second = nullptr;
  try {
    second = &backend("cuda:1");
  } catch (const Error& e) {
    MESSAGE(e.what());  // it is the only one here
    return;
  }
  CHECK(sum(a + a).item() == 10);  // the first one's turn, though the second was opened last
  const Tensor b = Tensor::full({5}, 2, DType::f32, *second);
  CHECK(sum(b * b).item() == 20);
  CHECK(sum(a * a).item() == 5);
}
