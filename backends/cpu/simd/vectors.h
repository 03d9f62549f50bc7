// Vectors of the processor's native width, as compiler vector extensions: the compiler knows the lanes, so it picks the
// instructions for shuffles and conversions.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace reel::cpu {

#if defined(__AVX512F__)
inline constexpr std::int64_t vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr std::int64_t vector_bytes = 32;
#else
inline constexpr std::int64_t vector_bytes = 16;
#endif

#if defined(__aarch64__)
#define REEL_VECTOR_REGISTER "w"
#else
#define REEL_VECTOR_REGISTER "v"
#endif

/// In front of a loop whose iterations do not depend on each other. Clang checks that at run time.
#ifdef __clang__
#define REEL_INDEPENDENT
#else
#define REEL_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <class T, std::int64_t n>
struct VectorOf {
  using type [[gnu::vector_size(n * sizeof(T))]] = T;
};
template <class T>
inline constexpr std::int64_t lanes = vector_bytes / static_cast<std::int64_t>(sizeof(T));
/// A vector of T that fills one register, or one of `n` lanes.
template <class T, std::int64_t n = lanes<T>>
using Vector = typename VectorOf<T, n>::type;

template <class T, std::int64_t n = lanes<T>>
inline Vector<T, n> load(const T* from) {
  Vector<T, n> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T, class V>
inline void store(T* to, V v) {
  std::memcpy(to, &v, sizeof v);
}

/// a x + sum, rounded once where the processor can.
template <class V>
inline V times_plus(V a, V x, V sum) {
#if defined(__FP_FAST_FMAF)
  if constexpr (std::is_floating_point_v<V>) return std::fma(a, x, sum);
  asm("" : "+" REEL_VECTOR_REGISTER(sum));  // or the compiler might contract another product with this sum
#endif
  return a * x + sum;
}

/// Lane k of the result is lane place(k) of a, or of b for place(k) >= lanes.
template <class T, auto place>
inline Vector<T> shuffled(Vector<T> a, Vector<T> b) {
  return [&]<std::int64_t... k>(std::integer_sequence<std::int64_t, k...>) {
    return __builtin_shufflevector(a, b, place(k)...);
  }
  (std::make_integer_sequence<std::int64_t, lanes<T>>{});
}

/// Lane k of the result is lane k ^ `distance` of v.
template <class T, std::int64_t distance>
inline Vector<T> across(Vector<T> v) {
  return shuffled<T, [](std::int64_t k) { return k ^ distance; }>(v, v);
}

/// Folds the lanes of v with f(a, b) to `parts` interleaved results, which are the first lanes of what comes back.
template <class T, std::int64_t parts = 1, std::int64_t half = lanes<T> / 2, class F>
inline Vector<T> fold_lanes(Vector<T> v, F f) {
  if constexpr (half < parts)
    return v;
  else
    return fold_lanes<T, parts, half / 2>(f(v, across<T, half>(v)), f);
}

/// Folds the lanes of each of `lanes` vectors, in the order of fold_lanes. In each round the halves of all rows are
/// combined, and two vectors become one.
template <class T, std::size_t count, class F>
inline Vector<T> fold_lanes_of_each(const std::array<Vector<T>, count>& rows, F f) {
  if constexpr (count == 1) {
    return rows[0];
  } else {
    constexpr auto half = static_cast<std::int64_t>(count / 2);
    constexpr auto first = [](std::int64_t k) { return k / half * 2 * half + k % half; };
    constexpr auto second = [](std::int64_t k) { return k / half * 2 * half + k % half + half; };
    std::array<Vector<T>, count / 2> folded;
    for (std::size_t i = 0; i < count / 2; ++i)
      folded[i] =
          f(shuffled<T, first>(rows[2 * i], rows[2 * i + 1]), shuffled<T, second>(rows[2 * i], rows[2 * i + 1]));
    return fold_lanes_of_each<T>(folded, f);
  }
}

/// Sums the lanes of v in `parts` interleaved sums, which are the first lanes of the result.
template <class T, std::int64_t parts = 1>
inline Vector<T> add_lanes(Vector<T> v) {
  return fold_lanes<T, parts>(v, [](Vector<T> a, Vector<T> b) { return a + b; });
}

/// For interleaved complex numbers: each real or imaginary part twice.
template <class T>
inline Vector<T> real_twice(Vector<T> z) {
  return shuffled<T, [](std::int64_t k) { return k / 2 * 2; }>(z, z);
}
template <class T>
inline Vector<T> imag_twice(Vector<T> z) {
  return shuffled<T, [](std::int64_t k) { return k / 2 * 2 + 1; }>(z, z);
}
/// i z: (-im, re).
template <class T>
inline Vector<T> turned(Vector<T> z) {
  return shuffled<T, [](std::int64_t k) { return (k ^ 1) + (k % 2 == 0 ? lanes<T> : 0); }>(z, -z);
}

}  // namespace reel::cpu
