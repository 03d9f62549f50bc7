// Exchanges among the threads of a warp, of complex numbers, too.
#pragma once
#include "backends/cuda/kernels/complex.h"

namespace reel::cuda {

inline constexpr int warp = 32;
inline constexpr unsigned whole_warp = 0xffffffff;

/// The value of the lane `by` below, for lanes that have one.
template <class W>
__device__ W from_below(W x, int by) {
  if constexpr (is_complex_type<W>)
    return W(__shfl_up_sync(whole_warp, x.real(), by), __shfl_up_sync(whole_warp, x.imag(), by));
  else
    return __shfl_up_sync(whole_warp, x, by);
}
template <class W>
__device__ W from_lane(W x, int lane) {
  if constexpr (is_complex_type<W>)
    return W(__shfl_sync(whole_warp, x.real(), lane), __shfl_sync(whole_warp, x.imag(), lane));
  else
    return __shfl_sync(whole_warp, x, lane);
}

}  // namespace reel::cuda
