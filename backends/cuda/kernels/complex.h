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

/// A power of four that brings numbers of this size to where their squares neither overflow nor vanish; else 1.
template <class R>
REEL_HD R scale_of(R size) {
  constexpr R large = sizeof(R) == 4 ? R(0x1p60) : R(0x1p1000);
  return size > large ? R(0x1p-60) : size < 1 / large ? R(0x1p60) : R(1);
}
/// size * wave, where size may be infinite and a wave of 0 stays 0: the wave is a sine or a cosine.
template <class R>
REEL_HD R swing(R size, R wave) {
  return wave == 0 ? std::copysign(R(1), size) * wave : size * wave;
}
/// e^x * factor * wave, finite also where e^x alone is not.
template <class R>
REEL_HD R exp_by(R x, R wave, R factor = 1) {
  const R size = std::exp(x);
  if (!std::isinf(size)) return swing(size * factor, wave);
  const R root = std::exp(x / 4);
  return swing(root, swing(root, swing(root, swing(root * factor, wave))));
}
/// cosh(x) * wave and sinh(x) * wave. Beyond 20 both are e^|x| / 2 to the last bit.
template <class R>
REEL_HD R cosh_by(R x, R wave) {
  return std::abs(x) > 20 ? exp_by(std::abs(x), wave, R(0.5)) : swing(std::cosh(x), wave);
}
template <class R>
REEL_HD R sinh_by(R x, R wave) {
  if (x == 0 && std::isnan(wave)) return x;
  return std::abs(x) > 20 ? exp_by(std::abs(x), wave, std::copysign(R(0.5), x)) : swing(std::sinh(x), wave);
}
/// cos(y); 1 if y has no angle and x is infinite, so that the size is kept.
template <class R>
REEL_HD R cos_beside(R x, R y) {
  return std::isinf(x) && !std::isfinite(y) ? R(1) : std::cos(y);
}

template <class R>
REEL_HD DeviceComplex<R> exp(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag();
  if (std::isinf(x) && x < 0) return {R(0), std::copysign(R(0), y)};  // whatever the angle
  return {exp_by(x, cos_beside(x, y)), exp_by(x, std::sin(y))};
}
/// Near |z| = 1 by log1p, without cancellation.
template <class R>
REEL_HD DeviceComplex<R> log(DeviceComplex<R> z) {
  const R x = std::abs(z.real()), y = std::abs(z.imag()), most = x < y ? y : x, least = x < y ? x : y;
  const R s = scale_of(most), size = std::hypot(x * s, y * s);
  constexpr R shift = R(60 * 0.6931471805599453);  // log of 2^60
  if (size > R(0.7) && size < R(1.5)) return {std::log1p((most - 1) * (most + 1) + least * least) / 2, arg(z)};
  return {std::log(size) + (s < 1 ? shift : s > 1 ? -shift : R(0)), arg(z)};
}
template <class R>
REEL_HD DeviceComplex<R> pow(DeviceComplex<R> z, DeviceComplex<R> w) {
  if (z == R(0) && w.real() > 0) return R(0);
  const DeviceComplex<R> l = log(z), product = w * l;
  if (std::isinf(l.real()) && std::isnan(product.real()) && std::isnan(product.imag()))  // lost beside a NaN
    return exp(DeviceComplex<R>(l.real() * w.real(), l.real() * w.imag()));
  return exp(product);
}
/// The root with a real part of at least 0, by sums without cancellation.
template <class R>
REEL_HD DeviceComplex<R> sqrt(DeviceComplex<R> z) {
  if (std::isinf(z.imag())) return {std::abs(z.imag()), z.imag()};  // also beside a NaN
  const R a = std::abs(z.real()), b = std::abs(z.imag()), s = scale_of(a < b ? b : a);
  const R x = z.real() * s, y = z.imag() * s, root = std::sqrt((std::hypot(x, y) + std::abs(x)) / 2);
  const R back = s < 1 ? R(0x1p30) : s > 1 ? R(0x1p-30) : R(1);
  if (root == 0) return {root, y};
  if (x < 0) return {std::abs(y) / (2 * root) * back, std::copysign(root * back, y)};
  return {root * back, y / (2 * root) * back};
}

template <class R>
REEL_HD DeviceComplex<R> sinh(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag();
  return {sinh_by(x, cos_beside(x, y)), cosh_by(x, std::sin(y))};
}
template <class R>
REEL_HD DeviceComplex<R> cosh(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag();
  return {cosh_by(x, cos_beside(x, y)), sinh_by(x, std::sin(y))};
}
template <class R>
REEL_HD DeviceComplex<R> sin(DeviceComplex<R> z) {
  const DeviceComplex<R> turned = sinh(DeviceComplex<R>(-z.imag(), z.real()));  // of i z
  return {turned.imag(), -turned.real()};
}
template <class R>
REEL_HD DeviceComplex<R> cos(DeviceComplex<R> z) {
  return cosh(DeviceComplex<R>(-z.imag(), z.real()));
}
/// Without cancellation near the poles (Kahan, Branch Cuts, 1987); so are acos and asin.
template <class R>
REEL_HD DeviceComplex<R> tanh(DeviceComplex<R> z) {
  const R x = z.real(), y = z.imag();
  if (std::abs(x) > R(20)) {
    const R wave = std::isinf(x) && !std::isfinite(y) ? std::copysign(R(0), y) : std::sin(y) * std::cos(y);
    return {std::copysign(R(1), x), 4 * wave * std::exp(-2 * std::abs(x))};
  }
  const R t = std::tan(y), beta = 1 + t * t, s = std::sinh(x), rho = std::sqrt(1 + s * s), below = 1 + beta * s * s;
  return {x == 0 ? x : beta * rho * s / below, y == 0 ? y : t / below};
}
template <class R>
REEL_HD DeviceComplex<R> tan(DeviceComplex<R> z) {
  const DeviceComplex<R> turned = tanh(DeviceComplex<R>(-z.imag(), z.real()));  // of i z
  return {turned.imag(), -turned.real()};
}
/// Is |z| so large that acos(z) and asin(z) are logarithms of 2 z, to the last bit? Also of NaN.
template <class R>
REEL_HD bool far_out(DeviceComplex<R> z) {
  return !(std::abs(z.real()) + std::abs(z.imag()) < (sizeof(R) == 4 ? R(1e5) : R(1e10)));
}
constexpr double half_pi = 1.5707963267948966, log_of_2 = 0.6931471805599453;
template <class R>
REEL_HD DeviceComplex<R> acos(DeviceComplex<R> z) {
  using C = DeviceComplex<R>;
  const R x = z.real(), y = z.imag();
  if (far_out(z))
    return {x == 0 ? R(half_pi) : std::atan2(std::abs(y), x), std::copysign(log(z).real() + R(log_of_2), -y)};
  const C p = sqrt(C(1 - x, -y)), q = sqrt(C(1 + x, y));
  return {2 * std::atan2(p.real(), q.real()), std::asinh(q.real() * p.imag() - q.imag() * p.real())};
}
template <class R>
REEL_HD DeviceComplex<R> asin(DeviceComplex<R> z) {
  using C = DeviceComplex<R>;
  const R x = z.real(), y = z.imag();
  if (far_out(z)) return {x == 0 ? x : std::atan2(x, std::abs(y)), std::copysign(log(z).real() + R(log_of_2), y)};
  const C p = sqrt(C(1 - x, -y)), q = sqrt(C(1 + x, y));
  return {std::atan2(x, p.real() * q.real() - p.imag() * q.imag()),
          std::asinh(p.real() * q.imag() - p.imag() * q.real())};
}
/// log((1 + i z) / (1 - i z)) / 2i, in real numbers.
template <class R>
REEL_HD DeviceComplex<R> atan(DeviceComplex<R> z) {
  const R x = z.real(), y = std::abs(z.imag()), t = std::hypot(x, 1 - y);  // t: from the pole
  if (std::isinf(x) || std::isinf(y))
    return {std::isnan(x) ? x : std::copysign(R(half_pi), x), std::copysign(R(0), z.imag())};
  if (std::abs(x) + y > (sizeof(R) == 4 ? R(1e9) : R(1e18)))  // 1 / z is nothing beside pi / 2
    return {std::copysign(R(half_pi), x), std::copysign(y / t / t, z.imag())};
  const R im = t < R(0.5) ? (std::log(std::hypot(x, 1 + y)) - std::log(t)) / 2 : std::log1p(4 * y / t / t) / 4;
  return {std::atan2(2 * x, (1 - y) * (1 + y) - x * x) / 2, y == 0 ? z.imag() : std::copysign(im, z.imag())};
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
