// What the kernels of single elements share: packs of neighbours that are read and written as one.
#pragma once
#include "backends/cuda/complex.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/plan.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};

/// How many neighbours of the largest of these types a thread takes at once: 16 bytes.
template <class... T>
inline constexpr int neighbours = 16 / static_cast<int>(std::max({sizeof(T)...}));

/// f as kernels call it, and the type of its result there.
template <class F>
struct Applied {
  F f;
  template <class... T>
  REEL_HD auto operator()(T... x) const {
    if constexpr (std::is_same_v<F, MakeComplex>)
      return DeviceComplex<std::common_type_t<T...>>(x...);
    else
      return f(x...);
  }
};
template <class F, class... T>
using applied = decltype(Applied<F>{}(T{}...));

/// The place of this thread, and how many there are.
__device__ inline std::int64_t thread() { return blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; }
__device__ inline std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

constexpr std::size_t dtypes = std::size(all_dtypes);

}  // namespace reel::cuda
