// The common header of generated kernels; compiled by NVRTC, and by g++ in the tests.
#pragma once
#include "backends/cuda/kernels/complex.h"  // before the functors, which use its functions
#include "backends/shared/convert.h"
#include "backends/shared/place.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::generated {

template <int i>
using Unary = typename Place<i, UnaryFunctors>::type;
template <int i>
using Binary = typename Place<i, BinaryFunctors>::type;

using Complex64 = cuda::DeviceComplex<float>;
using Complex128 = cuda::DeviceComplex<double>;
template <class T>
REEL_HD auto make_complex(T a, T b) {
  return cuda::DeviceComplex<T>(a, b);
}

/// Prefetches memory that will be read soon.
REEL_HD inline void prefetch([[maybe_unused]] const void* p) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

/// Contiguous elements that are loaded and stored as one.
template <class T, int n>
struct alignas(sizeof(T) * n) AlignedVector {
  T at[n];
};

}  // namespace reel::generated
