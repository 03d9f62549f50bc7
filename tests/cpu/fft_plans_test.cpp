// The cache of FFTW plans: how many it keeps, and of which lengths.
#include "backends/cpu/kernels/fft_plans.h"

#include "tests/support/check.h"

using reel::DType;
using reel::cpu::FftKind;
using reel::cpu::FftPlans;

TEST_CASE("plans of many elements leave the cache, those of few stay, and so do the last ones of any length") {
  constexpr std::int64_t large = 1 << 20;
  FftPlans plans;
  const std::shared_ptr<void> first = plans.get(FftKind::forward, DType::f32, 16);
  for (std::int64_t n = 17; n < 500; ++n) plans.get(FftKind::forward, DType::f32, n);
  CHECK(plans.get(FftKind::forward, DType::f32, 16) == first);
  CHECK(first.use_count() == 2);  // the cache's and ours
  for (int k = 1; k <= 2; ++k) plans.get(FftKind::forward, DType::f32, k * large);
  CHECK(first.use_count() == 2);
  const std::weak_ptr<void> last = plans.get(FftKind::forward, DType::f32, 3 * large);
  CHECK(first.use_count() == 1);
  const std::weak_ptr<void> inverse = plans.get(FftKind::backward, DType::f32, 3 * large);
  CHECK(!last.expired());
  CHECK(!inverse.expired());
}
