// Sums of rows that are added to what is there: one thread for each column.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_ops.h"

namespace reel::cuda {

namespace {

template <class W, class T>
__global__ void add_rows(std::int64_t rows, std::int64_t n, const T* x, const T* y, T* out) {
  for (std::int64_t j = thread(); j < n; j += all_threads()) {
    W sum(0);
    for (std::int64_t i = j; i < rows * n; i += n)
      sum = sum + (y ? math::times(widened<W>(x[i]), widened<W>(y[i])) : widened<W>(x[i]));
    out[j] = narrowed<T>(widened<W>(out[j]) + sum);
  }
}

}  // namespace

void Cuda::sum_rows(const SumRowsArgs& a) {
  if (a.dtype == DType::boolean) unsupported("sum_rows of bool");
  if (a.n == 0) return;
  dispatch(a.dtype, [&]<class E>(std::type_identity<E>) {
    if constexpr (!std::is_same_v<E, bool>) {
      using T = device_type<summand<E>>;
      using W = wide<T>;
      add_rows<W, T><<<blocks_for(a.n), threads_per_block, 0, stream()>>>(
          a.rows, a.n, static_cast<const T*>(a.x), static_cast<const T*>(a.y), static_cast<T*>(a.out));
    }
  });
  launched("sum_rows", {a.rows, a.n});
}

}  // namespace reel::cuda
