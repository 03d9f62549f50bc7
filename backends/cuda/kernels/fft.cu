// Fourier transforms by cuFFT with cached plans; kernels apply weights and scales.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/fft_plans.h"

namespace reel::cuda {

namespace {

/// Multiplies coefficient k of each row [n / 2 + 1] by `ends` if it is its own conjugate, else by `inner`; `real_ends`
/// drops the imaginary parts of the former. out may alias in.
template <class T>
__global__ void weigh(std::int64_t all, std::int64_t n, T ends, T inner, bool real_ends, const DeviceComplex<T>* in,
                      DeviceComplex<T>* out) {
  const std::int64_t m = n / 2 + 1;
  for (std::int64_t i = thread(); i < all; i += all_threads()) {
    const std::int64_t k = i % m;
    const bool end = k == 0 || 2 * k == n;
    const T factor = end ? ends : inner;
    out[i] = DeviceComplex<T>(in[i].real() * factor, end && real_ends ? T(0) : in[i].imag() * factor);
  }
}

template <class T>
__global__ void scale(std::int64_t n, T factor, DeviceComplex<T>* x) {
  for (std::int64_t i = thread(); i < n; i += all_threads())
    x[i] = DeviceComplex<T>(x[i].real() * factor, x[i].imag() * factor);
}

}  // namespace

void Cuda::fft(const FftArgs& a) {
  if (!is_complex(a.dtype)) unsupported("fft of real numbers");
  const std::int64_t all = a.rows * a.n;
  if (all == 0) return;
  stream();
  if (a.n == 1)  // the identity, without a cuFFT plan
    copy_bytes(a.out, a.in, static_cast<std::size_t>(all) * size_of(a.dtype));
  else
    retried([&] {
      fft_plans_->run({FftKind::complex, real_of(a.dtype), a.rows, a.n}, a.inverse, a.in, a.out, capturing_);
    });
  const auto go = [&]<class T>(T factor) {
    if (factor != T(1))
      scale<<<blocks_for(all), threads_per_block, 0, stream()>>>(all, factor, static_cast<DeviceComplex<T>*>(a.out));
  };
  a.dtype == DType::c64 ? go(static_cast<float>(a.scale)) : go(a.scale);
  launched("fft", {a.rows, a.n});
}

void Cuda::real_fft(const RealFftArgs& a) {
  if (!is_floating(a.dtype)) unsupported("real_fft of this dtype");
  if (a.rows == 0 || a.n == 0) return;
  const std::int64_t all = a.rows * (a.n / 2 + 1);
  const std::size_t bytes = static_cast<std::size_t>(a.rows * a.n) * size_of(a.dtype);
  stream();
  const auto go = [&]<class T>(std::type_identity<T>) {
    using C = DeviceComplex<T>;
    const auto weighed = [&](const void* in, void* out) {
      weigh<<<blocks_for(all), threads_per_block, 0, stream()>>>(all, a.n, static_cast<T>(a.ends),
                                                                 static_cast<T>(a.inner), a.inverse,
                                                                 static_cast<const C*>(in), static_cast<C*>(out));
    };
    // cuFFT needs real arrays with complex alignment: unaligned views go through an aligned copy.
    const auto beside = [&](const void* reals) { return aligned(reals, sizeof(C)) ? StoragePtr() : scratch(bytes); };
    if (a.inverse) {  // cuFFT overwrites its input
      const StoragePtr spectrum = scratch(static_cast<std::size_t>(all) * sizeof(C));
      weighed(a.in, spectrum->data);
      if (a.n == 1) return cast({complex_of(a.dtype), a.dtype, all, spectrum->data, a.out});
      const StoragePtr own = beside(a.out);
      retried([&] {
        fft_plans_->run({FftKind::real_backward, a.dtype, a.rows, a.n}, true, spectrum->data, own ? own->data : a.out,
                        capturing_);
      });
      if (own) copy_bytes(a.out, own->data, bytes);
    } else {
      if (a.n == 1) {
        cast({a.dtype, complex_of(a.dtype), all, a.in, a.out});
      } else {
        const StoragePtr own = beside(a.in);
        if (own) copy_bytes(own->data, a.in, bytes);
        retried([&] {
          fft_plans_->run({FftKind::real_forward, a.dtype, a.rows, a.n}, false, own ? own->data : a.in, a.out,
                          capturing_);
        });
      }
      if (a.ends != 1 || a.inner != 1) weighed(a.out, a.out);
    }
  };
  dispatch_floating(a.dtype, go);
  launched("real_fft", {a.rows, a.n});
}

}  // namespace reel::cuda
