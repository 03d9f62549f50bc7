// Loops over SIMD batches. The last few elements are padded to a full batch, so that an element's result does not
// depend on its index in the array.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <xsimd/xsimd.hpp>

namespace xsimd {

/// a b + c with one rounding, found by the functors through overload resolution: xsimd 8.1 rounds twice on AVX-512
/// unless the compiler contracts it.
template <class T, class A>
batch<T, A> multiply_add(const batch<T, A>& a, const batch<T, A>& b, const batch<T, A>& c) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float> && sizeof(batch<T, A>) == 64)
    return _mm512_fmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T, A>) == 64)
    return _mm512_fmadd_pd(a, b, c);
  else
#endif
    return fma(a, b, c);
}

/// 1 / x to 14 bits or better, found by the functors through overload resolution; their Newton step makes it 28 bits.
template <class T, class A>
batch<T, A> rough_inverse(const batch<T, A>& x) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float> && sizeof(batch<T, A>) == 64)
    return _mm512_rcp14_ps(x);
  else
#endif
    return batch<T, A>(T(1)) / x;
}

/// x 2^k for integer k, rounded once even if the result is subnormal. xsimd's ldexp needs 2^k to be a normal number, so
/// without AVX-512 this takes two steps.
template <class T, class A>
batch<T, A> scale_by_power(const batch<T, A>& x, const batch<T, A>& k) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float> && sizeof(batch<T, A>) == 64)
    return _mm512_scalef_ps(x, k);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T, A>) == 64)
    return _mm512_scalef_pd(x, k);
  else
#endif
  {
    const batch<T, A> half = trunc(k * batch<T, A>(T(0.5)));
    return ldexp(ldexp(x, to_int(half)), to_int(k - half));
  }
}

/// -x, also of zeros: xsimd subtracts from zero.
template <class T, class A>
batch<T, A> negated(const batch<T, A>& x) {
  return x ^ batch<T, A>(T(-0.0));
}

/// a b - c with one rounding; xsimd 8.1's own rounds twice on AVX-512.
template <class T, class A>
batch<T, A> multiply_subtract(const batch<T, A>& a, const batch<T, A>& b, const batch<T, A>& c) {
#if defined(__FMA__) && !defined(__AVX512F__)
  return fms(a, b, c);
#else
  return multiply_add(a, b, negated(c));
#endif
}

/// Before calls of the C library: beside wide registers in use, its functions take up to 20 times as long.
inline void leave_wide_registers() {
#ifdef __AVX__
  _mm256_zeroupper();
#endif
}

/// f of each lane, where xsimd has no function that is good enough.
template <class F, class T, class A>
batch<T, A> lane_by_lane(F f, const batch<T, A>& x) {
  alignas(A::alignment()) T lanes[batch<T, A>::size];
  x.store_aligned(lanes);
  leave_wide_registers();
  for (T& lane : lanes) lane = f(lane);
  return batch<T, A>::load_aligned(lanes);
}
template <class F, class T, class A>
batch<T, A> lane_by_lane(F f, const batch<T, A>& x, const batch<T, A>& y) {
  alignas(A::alignment()) T lanes[batch<T, A>::size], others[batch<T, A>::size];
  x.store_aligned(lanes);
  y.store_aligned(others);
  leave_wide_registers();
  for (std::size_t i = 0; i < batch<T, A>::size; ++i) lanes[i] = f(lanes[i], others[i]);
  return batch<T, A>::load_aligned(lanes);
}

/// x^y with std::pow: xsimd's exp and log would lose digits in large powers.
template <class T, class A>
batch<T, A> power(const batch<T, A>& x, const batch<T, A>& y) {
  return lane_by_lane([](T base, T exponent) { return std::pow(base, exponent); }, x, y);
}

namespace kernel::detail {
struct large_angle {};

/// Up to 20 pi xsimd subtracts multiples of pi / 2 in three parts of 33 bits each, too few beside a multiple of it.
/// Here the last part has all bits of a double.
template <class A>
struct trigo_reducer<batch<double, A>, trigo_radian_tag> {
  using B = batch<double, A>;
  static B reduce(const B& x, B& rest) noexcept {
    if (!all(x <= constants::twentypi<B>())) return trigo_reducer<B, large_angle>::reduce(x, rest);
    const B n = nearbyint(x * constants::twoopi<B>());
    rest = fnma(n, constants::pio2_2t<B>(), fnma(n, constants::pio2_2<B>(), fnma(n, constants::pio2_1<B>(), x)));
    return quadrant(n);
  }
};
}  // namespace kernel::detail

/// f(x) lane by lane alike, whatever the other lanes have. xsimd's sin, cos and tan reduce all lanes as the largest of
/// them needs it, which rounds otherwise; here each range of sizes is reduced on its own.
template <class T, class A, class F>
batch<T, A> by_range(const batch<T, A>& x, F&& f) {
  using B = batch<T, A>;
  const B size = abs(x);
  const auto small = size <= constants::twentypi<B>(), no_large = size <= constants::mediumpi<B>();
  if (all(small)) return f(x);
  B y = f(select(small, x, B(0)));
  if (any(no_large && !small)) y = select(small, y, f(select(no_large && !small, x, B(100))));
  return all(no_large) ? y : select(no_large, y, f(select(no_large, B(T(1e6)), x)));
}
#define REEL_BY_RANGE(f, T)                                                             \
  inline batch<T> f(const batch<T>& x) {                                                \
    return by_range(x, [](const batch<T>& v) { return f<T, batch<T>::arch_type>(v); }); \
  }
REEL_BY_RANGE(sin, float)
REEL_BY_RANGE(sin, double)
REEL_BY_RANGE(cos, float)
REEL_BY_RANGE(cos, double)
REEL_BY_RANGE(tan, float)
REEL_BY_RANGE(tan, double)
#undef REEL_BY_RANGE

// xsimd 8.1 divides floats and takes their roots by estimates on ARM: some results are off by an ulp, and
// sqrt(infinity) is NaN. 64-bit ARM has instructions that round as IEEE 754 says.
#ifdef __aarch64__
template <>
inline batch<float, neon64>& batch<float, neon64>::operator/=(const batch<float, neon64>& x) noexcept {
  return *this = vdivq_f32(*this, x);
}
inline batch<float, neon64> sqrt(const batch<float, neon64>& x) { return vsqrtq_f32(x); }
#endif

}  // namespace xsimd

namespace reel::cpu {

/// Copies 64 bytes to a 64-byte aligned address with a non-temporal store: for results larger than the caches, whose
/// lines are then not read first. Call finish_streaming before anything reads them.
inline void stream_line(void* to, const void* from) {
#ifdef __AVX512F__
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  std::memcpy(to, from, 64);
#endif
}
inline void finish_streaming() {
#ifdef __AVX512F__
  _mm_sfence();
#endif
}

#ifdef __AVX512F__
inline constexpr bool has_masks = true;
#else
inline constexpr bool has_masks = false;
#endif

/// The first n elements at x, at most as many as a batch has, and 0 in the other lanes.
template <class T>
xsimd::batch<T> load_first(const T* x, std::int64_t n) {
  using Batch = xsimd::batch<T>;
#ifdef __AVX512F__  // a copy through memory would wait for its own stores
  if constexpr (std::is_same_v<T, float> && sizeof(Batch) == 64)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), x);
  else if constexpr (std::is_same_v<T, double> && sizeof(Batch) == 64)
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << n) - 1), x);
  else
#endif
  {
    if (n == static_cast<std::int64_t>(Batch::size)) return Batch::load_unaligned(x);
    alignas(64) T buffer[Batch::size] = {};
    std::copy(x, x + n, buffer);
    return Batch::load_aligned(buffer);
  }
}

/// Stores the first n lanes.
template <class T>
void store_first(const xsimd::batch<T>& v, T* out, std::int64_t n) {
  using Batch = xsimd::batch<T>;
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float> && sizeof(Batch) == 64)
    _mm512_mask_storeu_ps(out, static_cast<__mmask16>((1U << n) - 1), v);
  else if constexpr (std::is_same_v<T, double> && sizeof(Batch) == 64)
    _mm512_mask_storeu_pd(out, static_cast<__mmask8>((1U << n) - 1), v);
  else
#endif
  {
    if (n == static_cast<std::int64_t>(Batch::size)) return v.store_unaligned(out);
    alignas(64) T buffer[Batch::size];
    v.store_aligned(buffer);
    std::copy(buffer, buffer + n, out);
  }
}

/// out[i] = f(x[i]), where f takes batches of T.
template <class T, class F>
void map_simd(std::int64_t n, const T* x, T* out, F&& f) {
  using Batch = xsimd::batch<T>;
  constexpr auto width = static_cast<std::int64_t>(Batch::size);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) f(Batch::load_unaligned(x + i)).store_unaligned(out + i);
  if (i < n) store_first(Batch(f(load_first(x + i, n - i))), out + i, n - i);
}

/// out[i] = f(a[i], b[i]) for all full batches; returns the first i that is left. one_a or one_b: that operand is a
/// scalar, broadcast to all i.
template <bool one_a, bool one_b, class T, class F>
std::int64_t zip_batches(std::int64_t n, const T* a, const T* b, T* out, F&& f) {
  using Batch = xsimd::batch<T>;
  constexpr auto width = static_cast<std::int64_t>(Batch::size);
  const auto load = [](const T* p, bool one, std::int64_t i) { return one ? Batch(*p) : Batch::load_unaligned(p + i); };
  std::int64_t i = 0;
  for (; i + width <= n; i += width) f(load(a, one_a, i), load(b, one_b, i)).store_unaligned(out + i);
  return i;
}

/// out[i] = f(a[i], b[i]) for all i, likewise.
template <bool one_a, bool one_b, class T, class F>
void zip_simd(std::int64_t n, const T* a, const T* b, T* out, F&& f) {
  using Batch = xsimd::batch<T>;
  const std::int64_t i = zip_batches<one_a, one_b>(n, a, b, out, f);
  if (i < n) {
    alignas(64) T left[Batch::size] = {}, right[Batch::size] = {};
    if (one_a)
      std::fill(left, left + Batch::size, *a);
    else
      std::copy(a + i, a + n, left);
    if (one_b)
      std::fill(right, right + Batch::size, *b);
    else
      std::copy(b + i, b + n, right);
    f(Batch::load_aligned(left), Batch::load_aligned(right)).store_aligned(left);
    std::copy(left, left + (n - i), out + i);
  }
}

}  // namespace reel::cpu
