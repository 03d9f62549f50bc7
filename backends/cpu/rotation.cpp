// One layer of plane rotations.
#include "backends/cpu/cpu.h"
#include "ops/functors/math.h"

namespace reel::cpu {

namespace {

/// out = c x + s x' and out' = c' x' + s' x for `width` neighbouring pairs, `distance` apart.
template <class T>
void pairs(std::int64_t width, std::int64_t distance, const T* x, const T* c, const T* s, T* out) {
  using math::times;
  for (std::int64_t j = 0; j < width; ++j) {
    const T a = x[j], b = x[j + distance];
    out[j] = times(c[j], a) + times(s[j], b);
    out[j + distance] = times(c[j + distance], b) + times(s[j + distance], a);
  }
}

template <class T>
void rotate_rows(const RotateArgs& r) {
  using math::times;
  const T *x = static_cast<const T*>(r.x), *c = static_cast<const T*>(r.c), *s = static_cast<const T*>(r.s);
  T* out = static_cast<T*>(r.out);
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.n, out += r.n) {
    if (r.distance == 1) {  // known to the compiler, so that it can shuffle vectors
      for (std::int64_t p = r.first; p < r.last; p += 2) pairs<T>(1, 1, x + p, c + p, s + p, out + p);
    } else {
      for (std::int64_t p = r.first; p < r.last; p += 2 * r.distance)
        pairs(r.distance, r.distance, x + p, c + p, s + p, out + p);
    }
    const auto alone = [&](std::int64_t j) { out[j] = times(c[j], x[j]) + times(s[j], x[j]); };
    for (std::int64_t j = 0; j < r.first; ++j) alone(j);
    for (std::int64_t j = r.last; j < r.n; ++j) alone(j);
  }
}

}  // namespace

void Cpu::rotate(const RotateArgs& r) {
  dispatch(r.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T> || is_complex_type<T>)
      rotate_rows<T>(r);
    else
      unsupported("rotate of integers or bool");
  });
}

}  // namespace reel::cpu
