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
  /// Rows of n numbers, one after another; backward without 1 / n. real_backward may overwrite `in`. `recorded`: into a
  /// graph, which needs the plan from then on. Throws Error when cuFFT does not take the size, CannotRecord when there
  /// is no plan yet for a graph.
  void run(const Key& key, bool inverse, const void* in, void* out, bool recorded);

 private:
  static constexpr std::size_t limit = 64;
  struct Plan {
    int handle;
    bool kept;  // for a graph
  };
  int plan(const Key& key, bool recorded);
  void clear(bool all);

  Libraries& libraries_;
  cudaStream_t stream_;
  std::map<Key, Plan> plans_;
};

}  // namespace reel::cuda
