#include "backends/cuda/matrix_kernels.h"

#include "backends/cuda/elementwise.h"

namespace reel::cuda {

namespace {

template <class R>
__global__ void find_not_finite(std::int64_t n, const R* x, int* flag) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) {
    if (!(x[i] - x[i] == R(0))) *flag = 1;  // all that write write the same
  }
}

template <class T>
__global__ void keep_lower(std::int64_t all, std::int64_t n, T* x) {
  for (std::int64_t i = thread(); i < all; i += all_threads()) {
    if (i % n > i / n % n) x[i] = T(0);
  }
}

/// |z| squared will not do for small ones; libcu++'s abs of a complex number, or the real one.
template <class T>
__device__ auto size_of_number(T z) {
  using math::abs;
  return abs(z);
}
template <class T>
__device__ T conjugate(T z) {
  if constexpr (is_complex_type<T>)
    return T(z.real(), -z.imag());
  else
    return z;
}

/// A thread for each vector.
template <class T>
__global__ void turn_vectors(std::int64_t n, const T* columns, T* vectors, std::int32_t* largest) {
  using R = decltype(size_of_number(T()));
  const R near = 1 - ::sqrt(std::numeric_limits<R>::epsilon());
  for (std::int64_t j = thread(); j < n; j += all_threads()) {
    const T* v = columns + j * n;
    R top = 0;
    for (std::int64_t i = 0; i < n; ++i) top = size_of_number(v[i]) > top ? size_of_number(v[i]) : top;
    std::int64_t k = 0;
    while (k < n - 1 && size_of_number(v[k]) < top * near) ++k;
    largest[j] = static_cast<std::int32_t>(k);
    const R size = size_of_number(v[k]);
    const T back = math::over(v[k], T(size));  // of the conjugate vector its conjugate is what turns it
    for (std::int64_t i = 0; i < n; ++i) vectors[i * n + j] = math::times(conjugate(v[i]), back);
    vectors[k * n + j] = T(size);
  }
}

}  // namespace

void flag_not_finite(DType dtype, const void* x, std::int64_t n, int* flag, cudaStream_t stream) {
  if (n == 0) return;
  const std::int64_t numbers = is_complex(dtype) ? 2 * n : n;
  if (real_of(dtype) == DType::f32)
    find_not_finite<float>
        <<<blocks_for(numbers), threads_per_block, 0, stream>>>(numbers, static_cast<const float*>(x), flag);
  else
    find_not_finite<double>
        <<<blocks_for(numbers), threads_per_block, 0, stream>>>(numbers, static_cast<const double*>(x), flag);
}

void clear_above_diagonal(DType dtype, void* x, std::int64_t batch, std::int64_t n, cudaStream_t stream) {
  const std::int64_t all = batch * n * n;
  dispatch(dtype, [&]<class E>(std::type_identity<E>) {
    using T = device_type<E>;
    keep_lower<T><<<blocks_for(all), threads_per_block, 0, stream>>>(all, n, static_cast<T*>(x));
  });
}

void take_vectors(DType dtype, const void* columns, std::int64_t n, void* vectors, std::int32_t* largest,
                  cudaStream_t stream) {
  dispatch(dtype, [&]<class E>(std::type_identity<E>) {
    if constexpr (is_differentiable(dtype_of<E>())) {
      using T = device_type<E>;
      turn_vectors<T>
          <<<blocks_for(n, 32), 32, 0, stream>>>(n, static_cast<const T*>(columns), static_cast<T*>(vectors), largest);
    }
  });
}

}  // namespace reel::cuda
