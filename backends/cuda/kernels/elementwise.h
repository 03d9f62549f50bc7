// Shared by the elementwise kernels: vectorized loads and stores of contiguous elements.
#pragma once
#include <array>

#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/complex.h"
#include "backends/cuda/kernels/plan.h"
#include "backends/shared/words.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

/// How many contiguous elements of the largest of these types a thread handles at once: 16 bytes.
template <class... T>
inline constexpr int neighbours = 16 / static_cast<int>(std::max({sizeof(T)...}));

/// f as kernels call it, and its result type there.
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

/// The index of this thread, and the number of threads.
__device__ inline std::int64_t thread() { return blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; }
__device__ inline std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

/// Vectorized part first, if the arrays are aligned, then the remaining elements.
template <int per, class F, class Out, class... T>
__global__ void map_elements(F f, std::int64_t n, bool packs, Out* out, const T*... x) {
  std::int64_t done = 0;
  if (packs) {
    const std::int64_t whole = n / per;
    const auto of_packs = [&](AlignedVector<T, per>... in) {  // one load each
      AlignedVector<Out, per> results;
#pragma unroll
      for (int k = 0; k < per; ++k) results.at[k] = f(in.at[k]...);
      return results;
    };
#pragma unroll 1
    for (std::int64_t g = thread(); g < whole; g += all_threads())
      reinterpret_cast<AlignedVector<Out, per>*>(out)[g] =
          of_packs(reinterpret_cast<const AlignedVector<T, per>*>(x)[g]...);
    done = whole * per;
  }
#pragma unroll 1
  for (std::int64_t i = done + thread(); i < n; i += all_threads()) out[i] = f(x[i]...);
}
/// out[i] = f(x[i]...).
template <class F, class Out, class... T>
void map_all(F f, std::int64_t n, cudaStream_t stream, Out* out, const T*... x) {
  constexpr int per = neighbours<Out, T...>;
  const bool packs = aligned(out, sizeof(Out) * per) && (aligned(x, sizeof(T) * per) && ...);
  map_elements<per><<<blocks_for(packs ? n / per : n), threads_per_block, 0, stream>>>(f, n, packs, out, x...);
}

/// A functor's kernel for one dtype: the function that launches it, and its name.
template <class Launch>
struct FunctorKernel {
  Launch launch = nullptr;
  const char* name = "";
};
template <class Launch>
using FunctorRow = std::array<FunctorKernel<Launch>, std::size(all_dtypes)>;

/// The kernels of a list's functors, by functor and dtype; `kernel` returns the one for F and the device type T.
template <class Launch, class Kernel, class... F>
auto functor_table(TypeList<F...>, Kernel kernel) {
  const auto row = [&]<class G>(std::type_identity<G>) {
    FunctorRow<Launch> kernels{};
    for (DType d : all_dtypes) {
      dispatch(d, [&]<class T>(std::type_identity<T>) {
        if constexpr (takes<G>(dtype_of<T>()))
          kernels[static_cast<std::size_t>(d)] = {kernel(std::type_identity<G>{}, std::type_identity<device_type<T>>{}),
                                                  G::name};
      });
    }
    return kernels;
  };
  return std::array{row(std::type_identity<F>{})...};
}
/// The kernel for a call: MapArgs or ZipArgs.
template <class Table, class Args>
const auto& kernel_for(const Table& table, const Args& a) {
  return table[static_cast<std::size_t>(a.functor)][static_cast<std::size_t>(a.dtype)];
}

/// Up to so many bytes a kernel copies and fills, not the runtime: a graph's nodes for that may wait for a copy engine.
inline constexpr std::size_t few_bytes = 1 << 16;

/// A word of 16 bytes, aligned for one access.
struct alignas(16) Sixteen {
  std::uint64_t low, high;
};
/// Calls f with a word of so many bytes: for kernels that only move elements. Throws where no dtype has that size.
template <class F>
void with_word(std::size_t bytes, F&& f) {
  dispatch_width(bytes, [&]<class Word>(std::type_identity<Word>) {
    if constexpr (sizeof(Word) == 16)
      f(Sixteen{});
    else
      f(Word{});
  });
}

}  // namespace reel::cuda
