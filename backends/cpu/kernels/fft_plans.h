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
  static constexpr std::size_t limit = 1024;  // when full, the cache is emptied
  std::mutex mutex_;
  std::map<std::tuple<FftKind, DType, std::int64_t>, std::shared_ptr<void>> plans_;
};

}  // namespace reel::cpu
