// flush_denormals: what is flushed, and in which threads.
#include "backends/cpu/threads/denormals.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "ops/ops.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// How many of 2^20 halves of the smallest normal number are 0, computed by all threads of the CPU backend.
std::int64_t zeros() {
  const std::vector<float> halves = (Tensor::full({1 << 20}, 0x1p-126, DType::f32) * 0.5).values<float>();
  return std::count_if(halves.begin(), halves.end(), [](float x) { return std::bit_cast<std::uint32_t>(x) == 0; });
}

}  // namespace

TEST_CASE("denormal numbers are 0 in the thread that says so, those that work for it and those that it starts") {
  Backend& cpu = backend("cpu");
  const int before = cpu.threads();
  for (const int threads : {1, 3}) {  // the pool's are there before anything is said
    cpu.set_threads(threads);
    CHECK(!flushes_denormals());
    CHECK(zeros() == 0);
    if (!flush_denormals(true)) {
      MESSAGE("not built for this processor");
      return;
    }
    CHECK(flushes_denormals());
    CHECK(zeros() == 1 << 20);
    bool flushed = false;
    std::thread([&] {
      volatile double tiny = 0x1p-1022;
      flushed = tiny * 0.5 == 0;
    }).join();
    CHECK(flushed);
    flush_denormals(false);
    CHECK(zeros() == 0);
  }
  cpu.set_threads(before);
}
