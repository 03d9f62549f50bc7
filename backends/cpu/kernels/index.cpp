// Gathers and scatters by index.
#include <cstring>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/check_index.h"
#include "backends/cpu/kernels/copy_bytes.h"
#include "backends/shared/lookup.h"
#include "backends/shared/reduce_rules.h"
#include "engine/core/error.h"

namespace reel::cpu {

void check_index(const std::int32_t* index, std::int64_t count, std::int64_t limit) {
  std::int32_t least = 0, most = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    least = std::min(least, index[i]);
    most = std::max(most, index[i]);
  }
  if (least == 0 && most < limit) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= limit) throw RuleError(index_text(index[i], i, limit));
  }
}

namespace {

/// Calls f(x, y) for all o < outer and i < count, where x is element (o, i) of a and y is element (o, index[i]) of b.
template <class A, class B, class F>
void each_number(const RowsArgs& r, A* a, B* b, F&& f) {
  const std::int64_t count = r.count;
  const std::int32_t* const index = r.index;
  for (std::int64_t o = 0; o < r.outer; ++o, a += count, b += r.rows) {
    for (std::int64_t i = 0; i < count; ++i) f(a[i], b[index[i]]);
  }
}

template <class T>
void gather(const RowsArgs& a) {
  const T* in = static_cast<const T*>(a.in);
  T* out = static_cast<T*>(a.out);
  if (a.width == 1) {
    return each_number(a, out, in, [](T& to, const T& from) { std::memcpy(&to, &from, sizeof(T)); });
  }
  for (std::int64_t o = 0; o < a.outer; ++o, in += a.rows * a.width) {
    for (std::int64_t i = 0; i < a.count; ++i, out += a.width)
      copy_bytes(in + a.index[i] * a.width, out, static_cast<std::size_t>(a.width) * sizeof(T));
  }
}

template <class T>
void take(const TakeArgs& a) {
  const T* in = static_cast<const T*>(a.in);
  T* out = static_cast<T*>(a.out);
  const std::int32_t* index = a.index;
  for (std::int64_t o = 0; o < a.outer; ++o, in += a.n * a.inner) {
    for (std::int64_t j = 0; j < a.m; ++j) {
      for (std::int64_t i = 0; i < a.inner; ++i) *out++ = in[*index++ * a.inner + i];
    }
  }
}

}  // namespace

void Cpu::gather_rows(const RowsArgs& a) {
  check_index(a.index, a.count, a.rows);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) { gather<T>(a); });
}

void Cpu::segment_sum(const RowsArgs& a) {
  check_index(a.index, a.count, a.rows);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("segment_sum of bool");
    else {
      using S = summand<T>;
      const S* in = static_cast<const S*>(a.in);
      S* out = static_cast<S*>(a.out);
      if (a.width == 1) {
        return each_number(a, in, out, [](const S& value, S& sum) { sum += value; });
      }
      for (std::int64_t o = 0; o < a.outer; ++o, out += a.rows * a.width) {
        for (std::int64_t i = 0; i < a.count; ++i, in += a.width) {
          S* row = out + a.index[i] * a.width;
          for (std::int64_t k = 0; k < a.width; ++k) row[k] += in[k];
        }
      }
    }
  });
}

void Cpu::take_along(const TakeArgs& a) {
  check_index(a.index, a.outer * a.m * a.inner, a.n);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) { take<T>(a); });
}

void Cpu::scatter_add(const TakeArgs& a) {
  check_index(a.index, a.outer * a.m * a.inner, a.n);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("scatter_add of bool");
    else {
      using S = summand<T>;
      const S* in = static_cast<const S*>(a.in);
      S* out = static_cast<S*>(a.out);
      const std::int32_t* index = a.index;
      for (std::int64_t o = 0; o < a.outer; ++o, out += a.n * a.inner) {
        for (std::int64_t j = 0; j < a.m; ++j) {
          for (std::int64_t i = 0; i < a.inner; ++i) out[*index++ * a.inner + i] += *in++;
        }
      }
    }
  });
}

}  // namespace reel::cpu
