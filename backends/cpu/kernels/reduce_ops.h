// Reductions: the rules that combine two values, and loops that reduce contiguous elements in an order that the
// compiler vectorizes.
#pragma once
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/kernels/constants.h"
#include "backends/cpu/simd/vectors.h"
#include "backends/shared/reduce_rules.h"

namespace reel::cpu {

// The rules. Short chunks are combined as T, which vectorizes; the chunks' results are combined as Wide.
template <class T>
struct SumOp {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr T neutral = 0;
  template <class V>
  static V combine(V a, V b) {
    return a + b;
  }
};
template <class T>
struct MaxOp : MaxRule {
  using Wide = T;
  static constexpr T neutral = MaxRule::neutral<T>();
  static T combine(T a, T b) { return a < b || b != b ? b : a; }  // as beats, without a branch
  template <class V>  // written so for scalars, too, GCC would not vectorize loops over columns: 12 times slower
  static V combine_lanes(V a, V b) {
    return ((a < b) | (b != b)) ? b : a;
  }
};
template <class T>
struct MinOp : MinRule {
  using Wide = T;
  static constexpr T neutral = MinRule::neutral<T>();
  static T combine(T a, T b) { return b < a || b != b ? b : a; }
  template <class V>
  static V combine_lanes(V a, V b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

using Doubles = Vector<double>;

/// A vector of doubles converted from elements of T.
template <class T>
Doubles load_doubles(const T* from) {
#ifdef __AVX512F__  // GCC 12 would convert each half by itself
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<Doubles>(_mm512_cvtps_pd(_mm256_loadu_ps(from)));
#endif
  return __builtin_convertvector((load<T, lanes<double>>(from)), Doubles);
}

/// Adds f(x) over n values x, with f(0) = 0: what remains is to add the lanes.
template <class T, class F>
Doubles lanes_of_doubles(const T* x, std::int64_t n, F&& f) {
  constexpr std::int64_t width = lanes<double>;
  Doubles even{}, odd{};
  std::int64_t i = 0;
  for (; i + 2 * width <= n; i += 2 * width) {
    even += f(load_doubles(x + i));
    odd += f(load_doubles(x + i + width));
  }
  if (i + width <= n) {
    even += f(load_doubles(x + i));
    i += width;
  }
  if (i < n && n >= width) {  // an overlapping last vector, with the lanes already summed masked out
    Vector<std::int64_t, width> place;
    for (std::int64_t k = 0; k < width; ++k) place[k] = k;
    odd += f(place >= width - (n - i) ? load_doubles(x + n - width) : Doubles{});
  } else if (i < n) {
    Doubles rest{};  // by lanes: what is stored in parts and loaded as a vector takes a detour
    for (std::int64_t k = 0; k < width - 1; ++k) {
      if (k < n) rest[k] = x[k];
    }
    odd += f(rest);
  }
  return even + odd;
}

/// Folds n < lanes<T> elements with f(a, b), in the order in which fold_lanes folds a vector of them: those at `first`,
/// `first + step`, `first + 2 step`, ...
template <class T, std::int64_t n, std::int64_t first = 0, std::int64_t step = 1, class From, class F>
T fold_few(const From* x, F f) {
  if constexpr (first + step < n)
    return f(fold_few<T, n, first, 2 * step>(x, f), fold_few<T, n, first + step, 2 * step>(x, f));
  else
    return static_cast<T>(x[first]);
}

/// Likewise for 2 to 5 elements: calls f with their number as a constant and returns true. False for others.
template <class T, class F>
bool with_few(std::int64_t n, F&& f) {
  return with_constant<2, std::min(std::int64_t{5}, lanes<T> - 1)>(n, f);
}

/// The sum of f(x) over n values x, with f(0) = 0; or `parts` interleaved sums, each over every `parts`-th value.
template <std::int64_t parts = 1, class T, class F>
void sum_of_doubles(const T* x, std::int64_t n, F&& f, double* total) {
  const Doubles sums = add_lanes<double, parts>(lanes_of_doubles(x, n, f));
  for (std::int64_t k = 0; k < parts; ++k) total[k] = sums[k];
}

/// Up to this many elements are summed in double throughout.
inline constexpr std::int64_t few = 512;
template <template <class> class Rule, class T>
inline constexpr bool sums_doubles = std::is_same_v<Rule<T>, SumOp<T>>&& std::is_floating_point_v<T>;

template <template <class> class Rule, class T>
inline constexpr bool picks_one = std::is_same_v<Rule<T>, MaxOp<T>> || std::is_same_v<Rule<T>, MinOp<T>>;

/// The first n < lanes<T> elements at x, and the neutral element in the other lanes.
template <template <class> class Rule, class T>
Vector<T> load_part(const T* x, std::int64_t n) {
  Vector<T> rest = Vector<T>{} + Rule<T>::neutral;
#ifdef __AVX512F__
  if constexpr (sizeof(T) >= 4) {
    const auto all = std::bit_cast<__m512i>(rest);
    const unsigned first = (1U << n) - 1;
    return std::bit_cast<Vector<T>>(sizeof(T) == 4 ? _mm512_mask_loadu_epi32(all, static_cast<__mmask16>(first), x)
                                                   : _mm512_mask_loadu_epi64(all, static_cast<__mmask8>(first), x));
  }
#endif
  for (std::int64_t k = 0; k < n; ++k) rest[k] = x[k];
  return rest;
}

/// The largest or smallest of n elements: what remains is to combine the lanes.
template <template <class> class Rule, class T>
Vector<T> lanes_of_best(const T* x, std::int64_t n) {
  constexpr std::int64_t width = lanes<T>;
  const auto better = [](Vector<T> a, Vector<T> b) { return Rule<T>::combine_lanes(a, b); };
  if (n < width) return load_part<Rule>(x, n);
  Vector<T> even = load(x), odd = even;
  std::int64_t i = width;
  for (; i + 2 * width <= n; i += 2 * width) {
    even = better(even, load(x + i));
    odd = better(odd, load(x + i + width));
  }
  if (i + width <= n) {
    even = better(even, load(x + i));
    i += width;
  }
  if (i < n) odd = better(odd, load(x + n - width));  // some elements a second time
  return better(even, odd);
}

/// Reduces n contiguous elements to one.
template <template <class> class Rule, class T>
typename Rule<T>::Wide reduce_run(const T* x, std::int64_t n) {
  using R = Rule<T>;
  using Wide = typename R::Wide;
  constexpr std::int64_t lanes = 32, run = 8 * lanes;  // GCC unrolls loops of 16 or less, not vectorizing them
  if constexpr (sums_doubles<Rule, T>) {
    if (n <= few) {
      double total;
      sum_of_doubles(
          x, n, [](Doubles v) { return v; }, &total);
      return total;
    }
  }
  if constexpr (picks_one<Rule, T>) {
    if (sizeof(T) >= 4 || n >= cpu::lanes<T>)
      return fold_lanes<T>(lanes_of_best<Rule>(x, n), [](auto a, auto b) { return R::combine_lanes(a, b); })[0];
  }
  if (n < lanes) {
    Wide total(R::neutral);
    for (std::int64_t i = 0; i < n; ++i) total = R::combine(total, Wide(x[i]));
    return total;
  }
  Wide total[lanes];
  std::fill_n(total, lanes, Wide(R::neutral));
  std::int64_t i = 0;
  while (n - i >= lanes) {
    T lane[lanes];
    std::copy_n(x + i, lanes, lane);
    const std::int64_t end = std::min(i + run, i + (n - i) / lanes * lanes);
    for (i += lanes; i < end; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) lane[k] = R::combine(lane[k], x[i + k]);
    }
    for (std::int64_t k = 0; k < lanes; ++k) total[k] = R::combine(total[k], Wide(lane[k]));
  }
  for (std::int64_t k = 0; i < n; ++i, ++k) total[k] = R::combine(total[k], Wide(x[i]));
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
    for (std::int64_t k = 0; k < half; ++k) total[k] = R::combine(total[k], total[k + half]);
  }
  return total[0];
}

}  // namespace reel::cpu
