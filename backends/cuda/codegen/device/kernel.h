// The common header of generated kernels; compiled by NVRTC, and by g++ in the tests.
#pragma once
#ifdef REEL_WITH_COMPLEX
#include "backends/cuda/kernels/complex.h"  // before the functors, which use its functions
#endif
#include "backends/shared/convert.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::generated {

/// The functor at an index of a list, which is how the calls of fusion groups name it.
template <int i, class List>
struct Place;
template <int i, class First, class... Rest>
struct Place<i, TypeList<First, Rest...>> : Place<i - 1, TypeList<Rest...>> {};
template <class First, class... Rest>
struct Place<0, TypeList<First, Rest...>> {
  using type = First;
};
template <int i>
using Unary = typename Place<i, UnaryFunctors>::type;
template <int i>
using Binary = typename Place<i, BinaryFunctors>::type;

#ifdef REEL_WITH_COMPLEX
using Complex64 = cuda::DeviceComplex<float>;
using Complex128 = cuda::DeviceComplex<double>;
template <class T>
REEL_HD auto make_complex(T a, T b) {
  return cuda::DeviceComplex<T>(a, b);
}
#endif

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
