// --denormals: what is flushed, and in which threads.
#include "tasks/app/denormals.h"

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

TEST_CASE("denormal numbers are 0 in the thread and in those that it starts, until they are kept again") {
  Backend& cpu = backend("cpu");
  const int before = cpu.threads();
  cpu.set_threads(1);
  CHECK(zeros() == 0);
  if (!flush_denormals(true)) {
    MESSAGE("not built for this processor");
    return;
  }
  cpu.set_threads(3);
  CHECK(zeros() == 1 << 20);
  bool flushed = false;
  std::thread([&] {
    volatile double tiny = 0x1p-1022;
    flushed = tiny * 0.5 == 0;
  }).join();
  CHECK(flushed);
  flush_denormals(false);
  cpu.set_threads(1);
  CHECK(zeros() == 0);
  cpu.set_threads(before);
}
