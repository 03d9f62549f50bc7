// Random fills; the numbers are engine/random.h's.
#include "engine/random.h"

#include "backends/cpu/cpu.h"
#include "engine/error.h"

namespace reel::cpu {

namespace {

/// out[i] = number(i)
template <class T, class F>
void fill_with(const RandomArgs& a, F&& number) {
  T* out = static_cast<T*>(a.out);
  for (std::int64_t i = 0; i < a.n; ++i) out[i] = static_cast<T>(number(static_cast<std::uint64_t>(i)));
}

template <class T>
void fill_floating(const RandomArgs& a) {
  if (a.distribution == Distribution::normal)
    return fill_with<T>(a, [&](std::uint64_t i) { return a.a + a.b * normal_at(a.seed, a.stream, i); });
  const T low = static_cast<T>(a.a), high = static_cast<T>(a.b);
  fill_with<T>(a, [&](std::uint64_t i) {
    const T x = static_cast<T>(a.a + (a.b - a.a) * uniform_at(a.seed, a.stream, i));
    return x >= high && low < high ? std::nextafter(high, low) : x;  // rounding must not reach high
  });
}

}  // namespace

void Cpu::random(const RandomArgs& a) {
  switch (a.distribution) {
    case Distribution::bernoulli:
      return fill_with<bool>(a, [&](std::uint64_t i) { return uniform_at(a.seed, a.stream, i) < a.a; });
    case Distribution::integers:
      return fill_with<std::int32_t>(a, [&](std::uint64_t i) {
        return integer_at(a.seed, a.stream, i, static_cast<std::int64_t>(a.a), static_cast<std::int64_t>(a.b));
      });
    default:
      REEL_ASSERT(is_floating(a.dtype));
      return a.dtype == DType::f32 ? fill_floating<float>(a) : fill_floating<double>(a);
  }
}

}  // namespace reel::cpu
