// map: one kernel for each functor and dtype, in a table generated from the functors' type list.
#include "backends/cuda/kernels/elementwise.h"

namespace reel::cuda {

namespace {

using Kernel = void (*)(const MapArgs&, cudaStream_t);

template <class F, class T>
void launch(const MapArgs& a, cudaStream_t stream) {
  map_all(Applied<F>{a.params.as<F>()}, a.n, stream, static_cast<applied<F, T>*>(a.out), static_cast<const T*>(a.x));
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
