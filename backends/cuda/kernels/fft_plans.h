// A cache of cuFFT plans by kind, precision and size: making a plan takes longer than running it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "engine/core/dtype.h"

namespace reel::cuda {

class Libraries;

enum class FftKind { complex, real_forward, real_backward };

class FftPlans {
 public:
  FftPlans(Libraries& libraries, cudaStream_t stream) : libraries_(libraries), stream_(stream) {}
  ~FftPlans();
  FftPlans(const FftPlans&) = delete;
  FftPlans& operator=(const FftPlans&) = delete;

  struct Key {
    FftKind kind;
    DType precision;
    std::int64_t rows, n;
    bool operator<(const Key& o) const {
      return std::tie(kind, precision, rows, n) < std::tie(o.kind, o.precision, o.rows, o.n);
    }
  };
  /// Transforms contiguous rows of n elements; backward without the factor 1 / n. real_backward may overwrite `in`.
  /// `recorded`: the call is captured, so the graph needs the plan from now on. Throws Error if cuFFT rejects the size,
  /// OutOfMemory if there is no room for a plan, NotCapturable if a capture meets a size without a plan.
  void run(const Key& key, bool inverse, const void* in, void* out, bool recorded);

 private:
  static constexpr std::size_t limit = 64;
  struct Plan {
    int handle;
    bool kept;  // a captured graph uses it
  };
  int plan(const Key& key, bool recorded);
  void clear(bool all);

  Libraries& libraries_;
  cudaStream_t stream_;
  std::map<Key, Plan> plans_;
};

}  // namespace reel::cuda
