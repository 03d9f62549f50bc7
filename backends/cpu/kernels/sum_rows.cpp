// Sums of rows that are added to what is there.
#include "backends/cpu/simd/sum_rows.h"

#include "backends/cpu/cpu.h"
#include "backends/shared/lookup.h"
#include "backends/shared/reduce_rules.h"
#include "ops/functors/math.h"

namespace reel::cpu {

namespace {

/// Adds the products of complex numbers, or of integers.
template <class T>
void add_products(const SumRowsArgs& a) {
  const T *x = static_cast<const T*>(a.x), *y = static_cast<const T*>(a.y);
  T* const out = static_cast<T*>(a.out);
  for (std::int64_t r = 0; r < a.rows; ++r, x += a.n, y += a.n) {
    for (std::int64_t j = 0; j < a.n; ++j) out[j] += math::times(x[j], y[j]);
  }
}

/// Adds rows of n real numbers.
template <bool product, class T>
void add(const SumRowsArgs& a, std::int64_t n) {
  add_rows<product>(a.rows, n, static_cast<const T*>(a.x), static_cast<const T*>(a.y), static_cast<T*>(a.out));
}

}  // namespace

void Cpu::sum_rows(const SumRowsArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("sum_rows of bool");
    else if constexpr (is_complex_type<T>)
      a.y ? add_products<T>(a) : add<false, typename T::value_type>(a, 2 * a.n);
    else if constexpr (std::is_floating_point_v<T>)
      a.y ? add<true, T>(a, a.n) : add<false, T>(a, a.n);
    else
      a.y ? add_products<summand<T>>(a) : add<false, summand<T>>(a, a.n);
  });
}

}  // namespace reel::cpu
