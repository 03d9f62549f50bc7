// cuFFT's plans, kept by kind, precision and size: making one takes longer than running it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "engine/dtype.h"

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
  /// Rows of n numbers, one after another; backward without 1 / n. real_backward may overwrite `in`. Throws Error when
  /// cuFFT does not take the size.
  void run(const Key& key, bool inverse, const void* in, void* out);

 private:
  static constexpr std::size_t limit = 64;
  int plan(const Key& key);
  void clear();

  Libraries& libraries_;
  cudaStream_t stream_;
  std::map<Key, int> plans_;
};

}  // namespace reel::cuda
