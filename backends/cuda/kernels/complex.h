// Element types in kernels. Complex numbers there are libcu++'s, which ships with the toolkit. std::complex must not
// reach device code: nvcc silently treats the GCC built-in complex type inside it as zero.
#pragma once
#include <cmath>
#include <complex>
#include <cuda/std/complex>

#include "engine/core/dtype.h"

namespace reel {

template <class R>
inline constexpr bool is_complex_type<::cuda::std::complex<R>> = true;

namespace cuda {

template <class R>
using DeviceComplex = ::cuda::std::complex<R>;

template <class T>
struct DeviceType {
  using type = T;
};
template <class R>
struct DeviceType<std::complex<R>> {
  using type = DeviceComplex<R>;
  static_assert(sizeof(type) == sizeof(std::complex<R>));
};
/// The type that represents an element type in kernels: same size, same bits.
template <class T>
using device_type = typename DeviceType<T>::type;

/// tanh z without cancellation near its poles, where libcu++'s loses digits (Kahan, Branch Cuts, 1987).
template <class R>
REEL_HD DeviceComplex<R> exact_tanh(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag();
  if (std::abs(x) > R(20)) return {std::copysign(R(1), x), 4 * std::sin(y) * std::cos(y) * std::exp(-2 * std::abs(x))};
  const R t = std::tan(y), beta = 1 + t * t, s = std::sinh(x), rho = std::sqrt(1 + s * s), below = 1 + beta * s * s;
  return {beta * rho * s / below, t / below};
}
/// acos z, likewise accurate near 1 and -1.
template <class R>
REEL_HD DeviceComplex<R> exact_acos(DeviceComplex<R> z) {
  using C = DeviceComplex<R>;
  const C p = ::cuda::std::sqrt(C(1 - z.real(), -z.imag())), q = ::cuda::std::sqrt(C(1 + z.real(), z.imag()));
  return {2 * std::atan2(p.real(), q.real()), std::asinh(q.real() * p.imag() - q.imag() * p.real())};
}

}  // namespace cuda
// Not templates, so that overload resolution prefers them to libcu++'s.
namespace math {
#define REEL_DEVICE_COMPLEX(C)                                              \
  REEL_HD inline C tanh(C z) { return cuda::exact_tanh(z); }                \
  REEL_HD inline C tan(C z) {                                               \
    const C turned = cuda::exact_tanh(C(-z.imag(), z.real())); /* of i z */ \
    return {turned.imag(), -turned.real()};                                 \
  }                                                                         \
  REEL_HD inline C acos(C z) { return cuda::exact_acos(z); }
REEL_DEVICE_COMPLEX(::cuda::std::complex<float>)
REEL_DEVICE_COMPLEX(::cuda::std::complex<double>)
#undef REEL_DEVICE_COMPLEX
}  // namespace math

}  // namespace reel
