// A cache of FFTW plans, one for each kind and length of transform. A plan covers a single row, so a row's result
// depends neither on the number of rows nor on how they are divided among threads.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "engine/core/dtype.h"

namespace reel::cpu {

enum class FftKind { forward, backward, real_forward, real_backward };

class FftPlans {
 public:
  /// Returns an fftw_plan (fftwf_plan for single precision), dtype f32 or f64, for aligned rows of n elements that do
  /// not overlap. The plan lives at least as long as the pointer.
  std::shared_ptr<void> get(FftKind kind, DType precision, std::int64_t n);

 private:
  // Above either limit the cache is emptied; some plans may stay, however long they are. A plan takes 6 to 25 bytes an
  // element.
  static constexpr std::size_t most_plans = 1024, any_length = 4;
  static constexpr std::int64_t most_elements = 1 << 22;
  std::mutex mutex_;
  std::int64_t elements_ = 0;  // sum of n
  std::map<std::tuple<FftKind, DType, std::int64_t>, std::shared_ptr<void>> plans_;
};

}  // namespace reel::cpu
