// Loops over SIMD batches of complex numbers, for functions that the compiler does not vectorize by itself.
#pragma once
#include <algorithm>

#include "backends/cpu/simd/simd.h"
#include "ops/functors/math.h"

namespace reel {

namespace cpu {

/// A batch of complex numbers, real and imaginary parts in separate registers.
template <class R>
struct Complexes {
  using Batch = xsimd::batch<R>;
  using value_type = Batch;
  static constexpr auto size = static_cast<std::int64_t>(Batch::size);
  Batch re, im;

  Complexes(const Batch& x, const Batch& y = Batch(0)) : re(x), im(y) {}
  static Complexes load(const std::complex<R>* from);
  void store(std::complex<R>* to) const;
  const Batch& real() const { return re; }
  const Batch& imag() const { return im; }

  std::complex<R> at(std::size_t k) const { return {re.get(k), im.get(k)}; }
};

#ifdef __AVX__
/// Sixteen bytes at p, and as many at p + step.
inline __m256 load_halves(const float* p, std::ptrdiff_t step) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1);
}
inline __m256d load_halves(const double* p, std::ptrdiff_t step) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(p + step), 1);
}
#endif

// xsimd 8.1 takes twice as many instructions with AVX.
template <class R>
Complexes<R> Complexes<R>::load(const std::complex<R>* from) {
#ifdef __AVX__
  const R* const p = reinterpret_cast<const R*>(from);
  if constexpr (std::is_same_v<R, float> && sizeof(Batch) == 32) {
    const __m256 a = load_halves(p, 8), b = load_halves(p + 4, 8);
    return {Batch(_mm256_shuffle_ps(a, b, 0x88)), Batch(_mm256_shuffle_ps(a, b, 0xdd))};
  } else if constexpr (std::is_same_v<R, double> && sizeof(Batch) == 32) {
    const __m256d a = load_halves(p, 4), b = load_halves(p + 2, 4);
    return {Batch(_mm256_unpacklo_pd(a, b)), Batch(_mm256_unpackhi_pd(a, b))};
  } else
#endif
  {
    const auto z = xsimd::batch<std::complex<R>>::load_unaligned(from);
    return {z.real(), z.imag()};
  }
}
template <class R>
void Complexes<R>::store(std::complex<R>* to) const {
#ifdef __AVX__
  R* const p = reinterpret_cast<R*>(to);
  if constexpr (std::is_same_v<R, float> && sizeof(Batch) == 32) {
    const __m256 a = _mm256_unpacklo_ps(re, im), b = _mm256_unpackhi_ps(re, im);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(a, b, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(a, b, 0x31));
  } else if constexpr (std::is_same_v<R, double> && sizeof(Batch) == 32) {
    const __m256d a = _mm256_unpacklo_pd(re, im), b = _mm256_unpackhi_pd(re, im);
    _mm256_storeu_pd(p, _mm256_permute2f128_pd(a, b, 0x20));
    _mm256_storeu_pd(p + 4, _mm256_permute2f128_pd(a, b, 0x31));
  } else
#endif
    xsimd::batch<std::complex<R>>(re, im).store_unaligned(to);
}

// What functors need.
template <class R>
Complexes<R> times(const Complexes<R>& a, const Complexes<R>& b) {
  return {multiply_subtract(a.re, b.re, a.im * b.im), multiply_add(a.re, b.im, a.im * b.re)};
}
template <class R>
Complexes<R> operator-(const Complexes<R>& z) {
  return {negated(z.re), negated(z.im)};
}
template <class R>
Complexes<R> operator+(const Complexes<R>& a, const Complexes<R>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
Complexes<R> operator-(const Complexes<R>& a, const Complexes<R>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R>
xsimd::batch_bool<R> operator==(const Complexes<R>& a, const Complexes<R>& b) {
  return a.re == b.re && a.im == b.im;
}
template <class R>
xsimd::batch_bool<R> operator!=(const Complexes<R>& a, const Complexes<R>& b) {
  return !(a == b);
}
template <class R>
Complexes<R> conj(const Complexes<R>& z) {
  return {z.re, negated(z.im)};
}
template <class R>
xsimd::batch<R> imag(const Complexes<R>& z) {
  return z.im;
}

/// Is the computed x^2 + y^2 far from overflow and underflow? Then it is accurate.
template <class R>
xsimd::batch_bool<R> is_moderate(const xsimd::batch<R>& square) {
  constexpr R least = sizeof(R) == 4 ? R(0x1p-60) : R(0x1p-500);
  return square > xsimd::batch<R>(least) && square < xsimd::batch<R>(1 / least);
}

template <class R>
xsimd::batch<R> abs(const Complexes<R>& z) {
  using Batch = xsimd::batch<R>;
  const Batch square = multiply_add(z.re, z.re, z.im * z.im);
  const auto fine = is_moderate(square);
  const Batch root = sqrt(square);
  if (!xsimd::all(fine) && !xsimd::all(fine || (z.re == Batch(0) && z.im == Batch(0)))) {
    alignas(64) R sizes[Batch::size];
    for (std::size_t k = 0; k < Batch::size; ++k) sizes[k] = math::abs(z.at(k));
    return select(fine, root, Batch::load_aligned(sizes));  // no lane depends on another
  }
  return root;
}

template <class R>
Complexes<R> over(const Complexes<R>& a, const Complexes<R>& b) {
  using Batch = xsimd::batch<R>;
  const Batch square = multiply_add(b.re, b.re, b.im * b.im);
  const auto fine = is_moderate(square);
  const Batch one = Batch(1) / square, u = b.re * one, v = b.im * one;  // 1 / b = u - i v
  const Complexes<R> quotient{multiply_add(a.re, u, a.im * v), multiply_subtract(a.im, u, a.re * v)};
  if (xsimd::all(fine)) return quotient;
  std::complex<R> quotients[Batch::size];
  for (std::size_t k = 0; k < Batch::size; ++k) quotients[k] = math::over(a.at(k), b.at(k));
  const auto safe = Complexes<R>::load(quotients);
  return {select(fine, quotient.re, safe.re), select(fine, quotient.im, safe.im)};
}

template <class R>
[[gnu::noinline]] Complexes<R> unit_by_lanes(const Complexes<R>& z) {
  std::complex<R> units[Complexes<R>::Batch::size];
  for (std::size_t k = 0; k < Complexes<R>::Batch::size; ++k) units[k] = math::unit(z.at(k));
  return Complexes<R>::load(units);
}
template <class R>  // inlined, as two registers come back through memory
[[gnu::always_inline]] inline Complexes<R> unit(const Complexes<R>& z) {
  using Batch = xsimd::batch<R>;
  const Batch square = multiply_add(z.re, z.re, z.im * z.im);
  const auto zero = z.re == Batch(0) && z.im == Batch(0), fine = is_moderate(square) || zero;
  const Batch size = select(zero, Batch(1), sqrt(square));
  const Complexes<R> quotient{z.re / size, z.im / size};
  if (xsimd::all(fine)) return quotient;
  const Complexes<R> safe = unit_by_lanes(z);
  return {select(fine, quotient.re, safe.re), select(fine, quotient.im, safe.im)};
}

template <class R>
void put(const Complexes<R>& z, std::complex<R>* to) {
  z.store(to);
}
template <class R>
void put(const xsimd::batch<R>& x, R* to) {
  x.store_unaligned(to);
}

/// out[i] = f(x[i]), where f takes Complexes and returns complex or real batches.
template <class R, class Out, class F>
void map_complexes(std::int64_t n, const std::complex<R>* x, Out* out, F&& f) {
  using Z = Complexes<R>;
  std::int64_t i = 0;
  for (; i + Z::size <= n; i += Z::size) put(f(Z::load(x + i)), out + i);
  if (i < n) {
    std::complex<R> rest[Z::size];
    Out results[Z::size];
    std::fill(std::copy(x + i, x + n, rest), rest + Z::size, x[i]);
    put(f(Z::load(rest)), results);
    std::copy(results, results + (n - i), out + i);
  }
}

/// out[i] = f(a[i], b[i]); one_a or one_b: that operand is a scalar, broadcast to all i.
template <bool one_a, bool one_b, class R, class F>
void zip_complexes(std::int64_t n, const std::complex<R>* a, const std::complex<R>* b, std::complex<R>* out, F&& f) {
  using Z = Complexes<R>;
  const auto at = [](const std::complex<R>* p, bool one, std::int64_t i) {
    return one ? Z(p->real(), p->imag()) : Z::load(p + i);
  };
  std::int64_t i = 0;
  for (; i + Z::size <= n; i += Z::size) put(f(at(a, one_a, i), at(b, one_b, i)), out + i);
  if (i < n) {
    std::complex<R> left[Z::size], right[Z::size];
    const auto fill = [&](const std::complex<R>* p, bool one, std::complex<R>* to) {
      std::fill(one ? to : std::copy(p + i, p + n, to), to + Z::size, one ? *p : p[i]);
    };
    fill(a, one_a, left);
    fill(b, one_b, right);
    put(f(Z::load(left), Z::load(right)), left);
    std::copy(left, left + (n - i), out + i);
  }
}

}  // namespace cpu

template <class R>
inline constexpr bool is_complex_type<cpu::Complexes<R>> = true;

}  // namespace reel
