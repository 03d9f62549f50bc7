// recurrence: running sums, products and both. Those of f32 and c64 are computed in double.
#include <algorithm>

#include "backends/cpu/cpu.h"
#include "backends/shared/reduce_rules.h"
#include "ops/functors/math.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t tile = 2048;  // columns per pass: their values stay in the L1 cache

template <bool has_factors, bool has_terms, class T, class Wide>
void recur(const RecurrenceArgs& a) {
  const T *factors = static_cast<const T*>(a.factors), *terms = static_cast<const T*>(a.terms);
  T* const out = static_cast<T*>(a.out);
  const auto next = [=](Wide& y, std::int64_t at) {
    if constexpr (has_factors) y = math::times(y, Wide(factors[at]));
    if constexpr (has_terms) y += Wide(terms[at]);
    out[at] = static_cast<T>(y);
  };
  const Wide before(has_terms ? 0 : 1);
  const std::int64_t start = a.reverse ? (a.n - 1) * a.inner : 0, step = a.reverse ? -a.inner : a.inner;
  Wide values[tile];
  for (std::int64_t o = 0; o < a.outer; ++o) {
    const std::int64_t begin = o * a.n * a.inner + start;
    if (a.inner == 1) {
      Wide y = before;
      for (std::int64_t j = 0, at = begin; j < a.n; ++j, at += step) next(y, at);
      continue;
    }
    for (std::int64_t first = 0; first < a.inner; first += tile) {
      const std::int64_t width = std::min(tile, a.inner - first);
      std::fill_n(values, width, before);
      for (std::int64_t j = 0, at = begin + first; j < a.n; ++j, at += step) {
        for (std::int64_t i = 0; i < width; ++i) next(values[i], at + i);
      }
    }
  }
}

template <class T, class Wide>
void recur(const RecurrenceArgs& a) {
  if (!a.factors) return recur<false, true, T, Wide>(a);
  a.terms ? recur<true, true, T, Wide>(a) : recur<true, false, T, Wide>(a);
}

}  // namespace

void Cpu::recurrence(const RecurrenceArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("recurrence of bool");
    else if constexpr (std::is_same_v<T, std::int32_t>)
      recur<summand<T>, summand<T>>(a);
    else if constexpr (is_complex_type<T>)
      recur<T, std::complex<double>>(a);
    else
      recur<T, double>(a);
  });
}

}  // namespace reel::cpu
