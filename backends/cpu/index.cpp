// Lookups by index.
#include <cstring>

#include "backends/cpu/cpu.h"
#include "engine/error.h"

namespace reel::cpu {

namespace {
void check(const std::int32_t* index, std::int64_t count, std::int64_t limit) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= limit) broken("index {} at place {} is not in 0..{}", index[i], i, limit - 1);
  }
}
}  // namespace

void Cpu::gather_rows(const RowsArgs& a) {
  check(a.index, a.count, a.rows);
  const std::size_t row = static_cast<std::size_t>(a.width) * size_of(a.dtype);
  for (std::int64_t i = 0; i < a.count; ++i)
    std::memcpy(static_cast<std::byte*>(a.out) + static_cast<std::size_t>(i) * row,
                static_cast<const std::byte*>(a.in) + static_cast<std::size_t>(a.index[i]) * row, row);
}

void Cpu::scatter_add_rows(const RowsArgs& a) {
  check(a.index, a.count, a.rows);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("scatter_add_rows of bool");
    else {
      const T* in = static_cast<const T*>(a.in);
      for (std::int64_t i = 0; i < a.count; ++i, in += a.width) {
        T* out = static_cast<T*>(a.out) + a.index[i] * a.width;
        for (std::int64_t k = 0; k < a.width; ++k) out[k] += in[k];
      }
    }
  });
}

void Cpu::pick(const PickArgs& a) {
  check(a.index, a.rows, a.n);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    const T* in = static_cast<const T*>(a.in);
    T* out = static_cast<T*>(a.out);
    for (std::int64_t r = 0; r < a.rows; ++r) out[r] = in[r * a.n + a.index[r]];
  });
}

void Cpu::place(const PickArgs& a) {
  check(a.index, a.rows, a.n);
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    const T* in = static_cast<const T*>(a.in);
    T* out = static_cast<T*>(a.out);
    std::fill_n(out, a.rows * a.n, T{});
    for (std::int64_t r = 0; r < a.rows; ++r) out[r * a.n + a.index[r]] = in[r];
  });
}

}  // namespace reel::cpu
