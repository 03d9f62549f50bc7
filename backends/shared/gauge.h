// The gauge of eigenvectors and singular vectors. Every backend fixes it by this rule, so that all give the same
// vectors.
#pragma once
#include <limits>

#include "ops/functors/math.h"  // after the backend's complex type, whose functions it then finds

namespace reel {

/// |z|; the square of |z| would underflow for small z.
template <class T>
REEL_HD auto absolute(T z) {
  using math::abs;
  return abs(z);
}
template <class T>
REEL_HD T conjugate(T z) {
  if constexpr (is_complex_type<T>)
    return T(z.real(), -z.imag());
  else
    return z;
}
/// z / |z|, and 1 for 0.
template <class T>
REEL_HD T phase_of(T z) {
  const auto size = absolute(z);
  return size == 0 ? T(1) : math::over(z, T(size));
}

/// The index of the component of largest modulus; the first, if several are equal to a relative sqrt(epsilon).
template <class T>
REEL_HD std::int64_t largest_component(const T* v, std::int64_t n, std::int64_t step) {
  using R = decltype(absolute(T()));
  R top = 0;
  for (std::int64_t i = 0; i < n; ++i) top = absolute(v[i * step]) > top ? absolute(v[i * step]) : top;
  const R near = top * (1 - std::sqrt(std::numeric_limits<R>::epsilon()));
  std::int64_t k = 0;
  while (k < n - 1 && absolute(v[k * step]) < near) ++k;
  return k;
}

/// Multiplies a vector by a phase that makes its largest component real and positive; returns the inverse phase.
template <class T>
REEL_HD T fix_gauge(T* v, std::int64_t n, std::int64_t step, std::int32_t* largest) {
  const std::int64_t k = largest_component(v, n, step);
  const auto size = absolute(v[k * step]);
  const T was = phase_of(v[k * step]), back = conjugate(was);
  for (std::int64_t i = 0; i < n; ++i) v[i * step] = math::times(v[i * step], back);
  v[k * step] = T(size);
  *largest = static_cast<std::int32_t>(k);
  return was;
}

}  // namespace reel
