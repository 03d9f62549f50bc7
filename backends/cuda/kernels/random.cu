// Random fills with the generator of ops/functors/philox.h, two values at a time: bitwise equal to the CPU's, except
// for the last digit of logarithms and cosines.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/shared/random.h"

namespace reel::cuda {

namespace {

template <class T, bool normal, class F>
__global__ void fill_random(std::uint64_t seed, std::uint64_t stream, const double* offset, std::int64_t n, F f,
                            T* out) {
  if (offset) stream += static_cast<std::uint64_t>(*offset);
  for (std::int64_t k = thread(); 2 * k < n; k += all_threads()) {
    const auto pair = normal ? normal_pair(seed, stream, static_cast<std::uint64_t>(k))
                             : uniform_pair(seed, stream, static_cast<std::uint64_t>(k));
    out[2 * k] = f(pair[0]);
    if (2 * k + 1 < n) out[2 * k + 1] = f(pair[1]);
  }
}

// Maps a random value to the distribution; a and b are the bounds, or mean and deviation.
template <class T>
struct Between {
  double a, b;
  __device__ T operator()(double u) const { return uniform_between<T>(u, a, b); }
};
template <class T>
struct Normal {
  double a, b;
  __device__ T operator()(double z) const { return static_cast<T>(a + b * z); }
};
struct Bernoulli {
  double a;
  __device__ bool operator()(double u) const { return u < a; }
};
struct Whole {
  double a, b;
  __device__ std::int32_t operator()(double u) const { return integer_between(u, a, b); }
};

}  // namespace

void Cuda::random(const RandomArgs& r) {
  if (!r.offset) not_captured("its random numbers would be the same at each step");
  if (r.n == 0) return;
  const auto run = [&]<class T, bool normal>(auto f) {
    fill_random<T, normal><<<blocks_for((r.n + 1) / 2), threads_per_block, 0, stream()>>>(
        r.seed, r.stream, r.offset, r.n, f, static_cast<T*>(r.out));
  };
  const auto floating = [&]<class T>() {
    if (r.distribution == Distribution::normal)
      run.template operator()<T, true>(Normal<T>{r.a, r.b});
    else
      run.template operator()<T, false>(Between<T>{r.a, r.b});
  };
  switch (r.distribution) {
    case Distribution::bernoulli:
      run.template operator()<bool, false>(Bernoulli{r.a});
      break;
    case Distribution::integers:
      run.template operator()<std::int32_t, false>(Whole{r.a, r.b});
      break;
    default:
      if (!is_floating(r.dtype)) unsupported("random numbers of this dtype");
      dispatch_floating(r.dtype, [&]<class T>(std::type_identity<T>) { floating.template operator()<T>(); });
  }
  launched("random", {r.n});
}

}  // namespace reel::cuda
