// Indices out of range on the GPU: where and when they are told. Needs a GPU; says that it is skipped where there is
// none.
#include "tests/support/check.h"
#include "tests/support/gpu.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("a bad index is told at the call with sync, and at the next read without") {
  Backend* const gpu = gpu_or_skip("cuda,sync");
  if (!gpu) return;
  const auto look = [](Backend& device, bool read, std::int64_t width = 2) {
    const Tensor table = Tensor::zeros({5, width}, DType::f32, device),
                 index = Tensor::from<std::int32_t>({1, 2, 7}, {3}, device);
    const Tensor picked = embedding(index, table);
    if (read) picked.values<float>();
  };
  CHECK(contains(error_of([&] { look(*gpu, false); }), "index 7 at place 2 is not in 0..4"));
  CHECK(contains(error_of([&] { look(*gpu, false, 0); }), "index 7 at place 2 is not in 0..4"));
  Backend& late = backend("cuda");
  CHECK(error_of([&] { look(late, false); }).empty());
  CHECK(contains(error_of([&] { look(late, true); }), "index 7 at place 2 is not in 0..4"));
}

TEST_CASE("a bad index in a loop that is one kernel is told, too") {
  Backend* const gpu = gpu_or_skip("cuda");
  if (!gpu) return;
  Backend& device = *gpu;
  const auto states = [&](std::int32_t last, bool back) {
    const Tensor index = Tensor::from<std::int32_t>({2, 0, last}, {3}, device);
    const Step step = [&](const Tensors& h, const Tensors& x) {
      const Tensor next = tanh(x[0] + (back ? index_add(h[0], -1, index, 3) : index_select(h[0], -1, index)));
      return Next{{next}, {next}};
    };
    const ScanResult out =
        scan(step, {Tensor::zeros({4, 3}, DType::f32, device)}, {uniform({6, 4, 3}, -1, 1, 5, 1, DType::f32, device)});
    return out.ys[0].values<float>();
  };
  for (const bool back : {false, true}) {
    CHECK(error_of([&] { states(1, back); }).empty());
    CHECK(contains(error_of([&] { states(7, back); }), "index 7 at place 2 is not in 0..2"));
    CHECK(contains(error_of([&] { states(-1, back); }), "index -1 at place 2 is not in 0..2"));
  }
}
