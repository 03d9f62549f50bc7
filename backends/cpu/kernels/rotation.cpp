// Layers of plane rotations. A few rows run together, so that coefficients are loaded once for all of them.
#include "backends/cpu/cpu.h"
#include "backends/cpu/simd/rotate_rows.h"
#include "backends/shared/words.h"

namespace reel::cpu {

namespace {

template <class T, std::int64_t parts, class F>
void each_row(const RotateArgs& r, const F& f) {
  const Layer<T, parts, F> layer(r.n, r.first, r.last, r.distance, f);
  const T* x = static_cast<const T*>(r.x);
  T* out = static_cast<T*>(r.out);
  const std::int64_t together =
      std::max<std::int64_t>(1, 2048 / (parts * std::max<std::int64_t>(r.n, 1)));  // in the nearest cache
  for (std::int64_t row = 0; row < r.rows; row += together) {
    const std::int64_t offset = row * parts * r.n;
    layer.rows(std::min(together, r.rows - row), x + offset, out + offset);
  }
}

}  // namespace

void Cpu::rotate(const RotateArgs& r) {
  if (!r.c) {
    return dispatch_width(size_of(r.dtype), [&]<class Word>(std::type_identity<Word>) {
      if constexpr (sizeof(Word) == 16)
        each_row<std::uint64_t, 2>(r, Exchanged<std::uint64_t, 2>{});
      else
        each_row<Word, 1>(r, Exchanged<Word, 1>{});
    });
  }
  const auto turn = [&]<class T, std::int64_t parts>() {
    each_row<T, parts>(r, Turned<T, parts>{static_cast<const T*>(r.c), static_cast<const T*>(r.s)});
  };
  dispatch(r.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>)
      turn.template operator()<T, 1>();
    else if constexpr (is_complex_type<T>)
      turn.template operator()<typename T::value_type, 2>();
    else
      unsupported("rotate of integers or bool");
  });
}

}  // namespace reel::cpu
