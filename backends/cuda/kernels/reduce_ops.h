// Reductions: the rules that combine two values, and how the threads of a block do it. The order is a tree that depends
// on sizes only, so that every run gives the same bits on every GPU.
#pragma once
#include "backends/cuda/kernels/complex.h"
#include "backends/shared/reduce_rules.h"

namespace reel::cuda {

/// The accumulator type of sums.
template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<float> {
  using type = double;
};
template <>
struct WideOf<DeviceComplex<float>> {
  using type = DeviceComplex<double>;
};
template <class T>
using wide = typename WideOf<T>::type;

/// x converted to W, which is wider or the same.
template <class W, class T>
__device__ W widened(T x) {
  if constexpr (is_complex_type<T>)
    return W(x.real(), x.imag());
  else
    return static_cast<W>(x);
}
template <class T, class W>
__device__ T narrowed(W x) {
  if constexpr (is_complex_type<T>)
    return T(static_cast<typename T::value_type>(x.real()), static_cast<typename T::value_type>(x.imag()));
  else
    return static_cast<T>(x);
}

struct SumOp {
  template <class T>
  using Wide = wide<T>;
  template <class W>
  __device__ static W neutral() {
    return W(0);
  }
  template <class W>
  __device__ static W combine(W a, W b) {
    return a + b;
  }
};
struct MaxOp : MaxRule {
  template <class T>
  using Wide = T;
  template <class W>
  __device__ static W combine(W a, W b) {
    return beats(b, a) ? b : a;
  }
};
struct MinOp : MinRule {
  template <class T>
  using Wide = T;
  template <class W>
  __device__ static W combine(W a, W b) {
    return beats(b, a) ? b : a;
  }
};

/// Reduces the values of a group's `lanes` threads, `step` apart in `room` (shared by the block) starting at `first`;
/// all threads of the block must call it. The result is room[first].
template <class Rule, class W>
__device__ void reduce_group(W* room, int first, int step, int lane, int lanes) {
  __syncthreads();
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (lane < half) {
      W& mine = room[first + lane * step];
      mine = Rule::combine(mine, room[first + (lane + half) * step]);
    }
    __syncthreads();
  }
}

}  // namespace reel::cuda
