// Complex numbers in kernels. std::complex must not reach device code: nvcc silently treats the GCC built-in complex
// type inside it as zero. libcu++'s would do, but its headers come with the toolkit, which the machine of a program
// need not have, and take NVRTC most of a second in each kernel.
#pragma once
#include <cmath>
#include <complex>

#include "engine/core/dtype.h"

namespace reel {

namespace cuda {

/// A complex number with the bits of std::complex, and its functions; their branch cuts are those of C99.
template <class R>
struct alignas(2 * sizeof(R)) DeviceComplex {
  using value_type = R;

  DeviceComplex() = default;
  REEL_HD constexpr DeviceComplex(R re, R im = R()) : re_(re), im_(im) {}
  REEL_HD constexpr R real() const { return re_; }
  REEL_HD constexpr R imag() const { return im_; }

  REEL_HD friend constexpr DeviceComplex operator-(DeviceComplex z) { return {-z.re_, -z.im_}; }
  REEL_HD friend constexpr DeviceComplex operator+(DeviceComplex a, DeviceComplex b) {
    return {a.re_ + b.re_, a.im_ + b.im_};
  }
  REEL_HD friend constexpr DeviceComplex operator-(DeviceComplex a, DeviceComplex b) {
    return {a.re_ - b.re_, a.im_ - b.im_};
  }
  REEL_HD friend constexpr DeviceComplex operator*(DeviceComplex a, DeviceComplex b) {
    return {a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_};
  }
  REEL_HD friend constexpr bool operator==(DeviceComplex a, DeviceComplex b) {
    return a.re_ == b.re_ && a.im_ == b.im_;
  }

 private:
  R re_, im_;
};

template <class R>
REEL_HD R real(DeviceComplex<R> z) {
  return z.real();
}
template <class R>
REEL_HD R imag(DeviceComplex<R> z) {
  return z.imag();
}
template <class R>
REEL_HD DeviceComplex<R> conj(DeviceComplex<R> z) {
  return {z.real(), -z.imag()};
}
template <class R>
REEL_HD R abs(DeviceComplex<R> z) {
  return std::hypot(z.real(), z.imag());
}
template <class R>
REEL_HD R arg(DeviceComplex<R> z) {
  return std::atan2(z.imag(), z.real());
}

template <class R>
REEL_HD DeviceComplex<R> exp(DeviceComplex<R> z) {
  const R size = std::exp(z.real());
  if (z.imag() == 0) return {size, z.imag()};  // also where the size is infinite
  return {size * std::cos(z.imag()), size * std::sin(z.imag())};
}
template <class R>
REEL_HD DeviceComplex<R> log(DeviceComplex<R> z) {
  return {std::log(abs(z)), arg(z)};
}
template <class R>
REEL_HD DeviceComplex<R> pow(DeviceComplex<R> z, DeviceComplex<R> w) {
  if (z == R(0) && w.real() > 0) return R(0);
  return exp(w * log(z));
}
/// The root with a real part of at least 0, by sums without cancellation.
template <class R>
REEL_HD DeviceComplex<R> sqrt(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag(), root = std::sqrt((abs(z) + std::abs(x)) / 2);
  if (root == 0) return {root, y};
  if (x < 0) return {std::abs(y) / (2 * root), std::copysign(root, y)};
  return {root, y / (2 * root)};
}

template <class R>
REEL_HD DeviceComplex<R> sin(DeviceComplex<R> z) {
  return {std::sin(z.real()) * std::cosh(z.imag()), std::cos(z.real()) * std::sinh(z.imag())};
}
template <class R>
REEL_HD DeviceComplex<R> cos(DeviceComplex<R> z) {
  return {std::cos(z.real()) * std::cosh(z.imag()), -std::sin(z.real()) * std::sinh(z.imag())};
}
template <class R>
REEL_HD DeviceComplex<R> sinh(DeviceComplex<R> z) {
  return {std::sinh(z.real()) * std::cos(z.imag()), std::cosh(z.real()) * std::sin(z.imag())};
}
template <class R>
REEL_HD DeviceComplex<R> cosh(DeviceComplex<R> z) {
  return {std::cosh(z.real()) * std::cos(z.imag()), std::sinh(z.real()) * std::sin(z.imag())};
}
/// Without cancellation near the poles (Kahan, Branch Cuts, 1987); so are acos and asin.
template <class R>
REEL_HD DeviceComplex<R> tanh(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag();
  if (std::abs(x) > R(20)) return {std::copysign(R(1), x), 4 * std::sin(y) * std::cos(y) * std::exp(-2 * std::abs(x))};
  const R t = std::tan(y), beta = 1 + t * t, s = std::sinh(x), rho = std::sqrt(1 + s * s), below = 1 + beta * s * s;
  return {beta * rho * s / below, t / below};
}
template <class R>
REEL_HD DeviceComplex<R> tan(DeviceComplex<R> z) {
  const DeviceComplex<R> turned = tanh(DeviceComplex<R>(-z.imag(), z.real()));  // of i z
  return {turned.imag(), -turned.real()};
}
template <class R>
REEL_HD DeviceComplex<R> acos(DeviceComplex<R> z) {
  using C = DeviceComplex<R>;
  const C p = sqrt(C(1 - z.real(), -z.imag())), q = sqrt(C(1 + z.real(), z.imag()));
  return {2 * std::atan2(p.real(), q.real()), std::asinh(q.real() * p.imag() - q.imag() * p.real())};
}
template <class R>
REEL_HD DeviceComplex<R> asin(DeviceComplex<R> z) {
  using C = DeviceComplex<R>;
  const C p = sqrt(C(1 - z.real(), -z.imag())), q = sqrt(C(1 + z.real(), z.imag()));
  return {std::atan2(z.real(), p.real() * q.real() - p.imag() * q.imag()),
          std::asinh(p.real() * q.imag() - p.imag() * q.real())};
}
/// log((1 + i z) / (1 - i z)) / 2i, in real numbers.
template <class R>
REEL_HD DeviceComplex<R> atan(DeviceComplex<R> z) {
  const R x = z.real(), y = std::abs(z.imag());
  return {std::atan2(2 * x, (1 - y) * (1 + y) - x * x) / 2,
          std::copysign(std::log1p(4 * y / ((1 - y) * (1 - y) + x * x)) / 4, z.imag())};
}

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

}  // namespace cuda

template <class R>
inline constexpr bool is_complex_type<cuda::DeviceComplex<R>> = true;

}  // namespace reel
