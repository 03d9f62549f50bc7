// One layer of plane rotations, or of exchanges only: one thread per element, which also reads its partner.
#include "backends/cuda/kernels/elementwise.h"

namespace reel::cuda {

namespace {

struct Layer {
  std::int64_t n, first, last, distance;

  /// The index that j is paired with; j itself outside of the layer.
  __device__ std::int64_t partner(std::int64_t j) const {
    if (j < first || j >= last) return j;
    return (j - first) % (2 * distance) < distance ? j + distance : j - distance;
  }
};

template <class T>
__global__ void turn(Layer layer, std::int64_t all, const T* x, const T* c, const T* s, T* out) {
  for (std::int64_t i = thread(); i < all; i += all_threads()) {
    const std::int64_t j = i % layer.n, other = i - j + layer.partner(j);
    out[i] = math::times(c[j], x[i]) + math::times(s[j], x[other]);
  }
}

template <class Word>
__global__ void exchange(Layer layer, std::int64_t all, const Word* x, Word* out) {
  for (std::int64_t i = thread(); i < all; i += all_threads()) {
    const std::int64_t j = i % layer.n;
    out[i] = x[i - j + layer.partner(j)];
  }
}

}  // namespace

void Cuda::rotate(const RotateArgs& r) {
  const std::int64_t all = r.rows * r.n;
  if (all == 0) return;
  const Layer layer{r.n, r.first, r.last, r.distance};
  dispatch(r.dtype, [&]<class E>(std::type_identity<E>) {
    using T = device_type<E>;
    const T* x = static_cast<const T*>(r.x);
    T* out = static_cast<T*>(r.out);
    if (!r.c)
      exchange<<<blocks_for(all), threads_per_block, 0, stream()>>>(layer, all, x, out);
    else if constexpr (is_differentiable(dtype_of<E>()))
      turn<<<blocks_for(all), threads_per_block, 0, stream()>>>(layer, all, x, static_cast<const T*>(r.c),
                                                                static_cast<const T*>(r.s), out);
    else
      unsupported("rotate of integers or bool");
  });
  launched("rotate", {r.rows, r.n});
}

}  // namespace reel::cuda
