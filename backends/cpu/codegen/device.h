// What compiled fusion groups and row chains include: SIMD batches of real and complex numbers, the functors,
// conversions, loads of a part of a row, and the calls of a chain that are no group.
#pragma once
#include <bit>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "backends/cpu/codegen/chain_args.h"
#include "backends/cpu/simd/complex_simd.h"
#include "backends/cpu/simd/rotate_rows.h"
#include "backends/cpu/simd/sum_rows.h"
#include "backends/shared/place.h"
#include "engine/device/kernels.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cpu {

/// The functor at an index of its list.
template <int i>
using Unary = typename Place<i, UnaryFunctors>::type;
template <int i>
using Binary = typename Place<i, BinaryFunctors>::type;

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

// A value of a group: a batch of real numbers, of complex numbers, or of conditions.
template <class T>
struct Batched {
  using type = xsimd::batch<T>;
};
template <class R>
struct Batched<std::complex<R>> {
  using type = Complexes<R>;
};
template <class T>
using BatchOf = typename Batched<T>::type;

/// The same value, of which the compiler does not see where it is from: it would contract products and sums of two
/// calls to one operation with one rounding, and the interpreter rounds twice.
template <class R>
xsimd::batch<R> fixed(xsimd::batch<R> v) {
  asm("" : "+v"(v.data));
  return v;
}
template <class R>
Complexes<R> fixed(const Complexes<R>& z) {
  return {fixed(z.re), fixed(z.im)};
}
template <class R>
xsimd::batch_bool<R> fixed(xsimd::batch_bool<R> c) {
  return c;
}

template <class R>
Complexes<R> make_complex(const xsimd::batch<R>& re, const xsimd::batch<R>& im) {
  return {re, im};
}

/// condition ? a : b.
template <class R>
xsimd::batch<R> choose(xsimd::batch_bool<R> c, const xsimd::batch<R>& a, const xsimd::batch<R>& b) {
  return select(c, a, b);
}
template <class R>
Complexes<R> choose(xsimd::batch_bool<R> c, const Complexes<R>& a, const Complexes<R>& b) {
  return {select(c, a.re, b.re), select(c, a.im, b.im)};
}
template <class R>
xsimd::batch_bool<R> choose(xsimd::batch_bool<R> c, xsimd::batch_bool<R> a, xsimd::batch_bool<R> b) {
  return (c && a) || (!c && b);
}

/// As element_cast, between dtypes of one precision. NaN is not 0, as != of xsimd 8.1 on AVX-512 would have it.
template <class To, class R>
auto batch_cast(const xsimd::batch<R>& x) {
  if constexpr (std::is_same_v<To, bool>)
    return !(x == xsimd::batch<R>(0));
  else
    return BatchOf<To>(x);
}
template <class To, class R>
auto batch_cast(const Complexes<R>& z) {
  if constexpr (std::is_same_v<To, bool>)
    return !(z.re == xsimd::batch<R>(0) && z.im == xsimd::batch<R>(0));
  else if constexpr (is_complex_type<To>)
    return z;
  else
    return z.re;
}
template <class To, class R>
auto batch_cast(xsimd::batch_bool<R> c) {
  if constexpr (std::is_same_v<To, bool>)
    return c;
  else
    return BatchOf<To>(select(c, xsimd::batch<R>(1), xsimd::batch<R>(0)));
}

template <class R>
xsimd::batch<R> load_batch(const R* from) {
  return xsimd::batch<R>::load_unaligned(from);
}
template <class R>
Complexes<R> load_batch(const std::complex<R>* from) {
  return Complexes<R>::load(from);
}
/// One element for all lanes.
template <class R>
xsimd::batch<R> repeat(const R* from) {
  return xsimd::batch<R>(*from);
}
template <class R>
Complexes<R> repeat(const std::complex<R>* from) {
  return {xsimd::batch<R>(from->real()), xsimd::batch<R>(from->imag())};
}
template <class T>
inline constexpr std::size_t batch_size = BatchOf<T>::size;

/// Elements c, c + 1, ... of a row; the last batch of a row (Part is true) has only n - c of them, then zeros.
template <class Part, class T>
BatchOf<T> load(Part, const T* row, std::int64_t c, std::int64_t n) {
  if constexpr (!Part::value) {
    return load_batch(row + c);
  } else {
    alignas(64) T some[batch_size<T>] = {};
    std::copy(row + c, row + n, some);
    return load_batch(some);
  }
}

/// Conditions c, c + 1, ... of a row, beside numbers of precision R.
template <class R, class Part>
xsimd::batch_bool<R> load_conditions(Part, const bool* row, std::int64_t c, std::int64_t n) {
  bool some[batch_size<R>] = {};
  std::copy_n(row + c, Part::value ? n - c : static_cast<std::int64_t>(batch_size<R>), some);
  return xsimd::batch_bool<R>::load_unaligned(some);
}

/// Elements c - shift, c - shift + 1, ... of a row of n, which wraps around; 0 < shift < n.
template <class Part, class T>
BatchOf<T> load_rolled(Part, const T* row, std::int64_t c, std::int64_t shift, std::int64_t n) {
  const std::int64_t size = Part::value ? n - c : static_cast<std::int64_t>(batch_size<T>);
  if (!Part::value && c >= shift) return load_batch(row + c - shift);
  if (!Part::value && c + size <= shift) return load_batch(row + c - shift + n);
  alignas(64) T some[batch_size<T>] = {};
  for (std::int64_t i = 0; i < size; ++i) some[i] = row[c + i >= shift ? c + i - shift : c + i - shift + n];
  return load_batch(some);
}

template <class Part, class V, class T>
void store(Part, const V& v, T* row, std::int64_t c, std::int64_t n) {
  if constexpr (!Part::value) {
    put(v, row + c);
  } else {
    alignas(64) T some[batch_size<T>];
    put(v, some);
    std::copy(some, some + (n - c), row + c);
  }
}

template <class Part, class R>
void store(Part, const xsimd::batch_bool<R>& v, bool* row, std::int64_t c, std::int64_t n) {
  bool some[batch_size<R>];
  v.store_unaligned(some);
  std::copy_n(some, Part::value ? n - c : static_cast<std::int64_t>(batch_size<R>), row + c);
}

/// Stores past the caches, if `to` is aligned to a vector.
template <class R>
void stream(const xsimd::batch<R>& v, R* to) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof v != 0) return put(v, to);
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), std::bit_cast<__m512i>(v.data));
#elif defined(__AVX__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), std::bit_cast<__m256i>(v.data));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), std::bit_cast<__m128i>(v.data));
#else
  put(v, to);
#endif
}
/// What has been streamed is in memory when others read it.
inline void end_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Row i of a table of rows of n.
template <class T>
void gather_row(const T* table, T* out, std::int32_t i, std::int64_t n) {
  std::copy_n(table + i * n, n, out);
}

/// Adds to row i of a table, which does not overlap `in`.
template <class T>
void add_to_row(const T* in, T* table, std::int32_t i, std::int64_t n) {
  T* const row = table + i * n;
  REEL_INDEPENDENT
  for (std::int64_t k = 0; k < n; ++k) row[k] += in[k];
}

}  // namespace reel::cpu
