// map: one kernel for each functor and dtype, in a table made from the functors' type list.
#include "backends/cuda/elementwise.h"

namespace reel::cuda {

namespace {

/// Packs first, if the arrays are laid for them, then what is left.
template <class F, class T, class Out, int per>
__global__ void map_elements(Applied<F> f, std::int64_t n, bool packs, const T* x, Out* out) {
  std::int64_t done = 0;
  if (packs) {
    const std::int64_t whole = n / per;
#pragma unroll 1
    for (std::int64_t g = thread(); g < whole; g += all_threads()) {
      const auto in = reinterpret_cast<const Pack<T, per>*>(x)[g];
      Pack<Out, per> results;
#pragma unroll
      for (int k = 0; k < per; ++k) results.at[k] = f(in.at[k]);
      reinterpret_cast<Pack<Out, per>*>(out)[g] = results;
    }
    done = whole * per;
  }
#pragma unroll 1
  for (std::int64_t i = done + thread(); i < n; i += all_threads()) out[i] = f(x[i]);
}

using Kernel = void (*)(const MapArgs&, cudaStream_t);

template <class F, class T>
void launch(const MapArgs& a, cudaStream_t stream) {
  using Out = applied<F, T>;
  constexpr int per = neighbours<T, Out>;
  const bool packs = aligned(a.x, sizeof(T) * per) && aligned(a.out, sizeof(Out) * per);
  map_elements<F, T, Out, per><<<blocks_for(packs ? a.n / per : a.n), threads_per_block, 0, stream>>>(
      {*static_cast<const F*>(a.params)}, a.n, packs, static_cast<const T*>(a.x), static_cast<Out*>(a.out));
}

const auto maps = functor_table<Kernel>(
    UnaryFunctors{},
    []<class F, class T>(std::type_identity<F>, std::type_identity<T>) -> Kernel { return launch<F, T>; });

}  // namespace

void Cuda::map(const MapArgs& a) {
  if (a.n == 0) return;
  const auto& kernel = kernel_for(maps, a);
  kernel.launch(a, stream());
  launched("map", kernel.name, {a.n});
}

}  // namespace reel::cuda
