// Exchanges among the threads of a warp, of complex numbers, too.
#pragma once
#include "backends/cuda/kernels/complex.h"

namespace reel::cuda {

inline constexpr int warp = 32;
inline constexpr unsigned whole_warp = 0xffffffff;

/// f(x), by parts for a complex number.
template <class W, class F>
__device__ W of_parts(W x, F f) {
  if constexpr (is_complex_type<W>)
    return W(f(x.real()), f(x.imag()));
  else
    return f(x);
}

/// The value of the lane `by` below, for lanes that have one.
template <class W>
__device__ W from_below(W x, int by) {
  return of_parts(x, [by](auto part) { return __shfl_up_sync(whole_warp, part, by); });
}
template <class W>
__device__ W from_lane(W x, int lane) {
  return of_parts(x, [lane](auto part) { return __shfl_sync(whole_warp, part, lane); });
}

}  // namespace reel::cuda
