// Random fills; the numbers are engine/random.h's.
#include "engine/random.h"

#include "backends/cpu/cpu.h"

namespace reel::cpu {

void Cpu::random(const RandomArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      T* out = static_cast<T*>(a.out);
      for (std::int64_t i = 0; i < a.n; ++i) {
        const auto index = static_cast<std::uint64_t>(i);
        double x;
        if (a.distribution == Distribution::normal) {
          x = a.a + a.b * normal_at(a.seed, a.stream, index);
        } else {
          x = a.a + (a.b - a.a) * uniform_at(a.seed, a.stream, index);
        }
        out[i] = static_cast<T>(x);
        if (a.distribution == Distribution::uniform && out[i] >= static_cast<T>(a.b) && a.a < a.b)
          out[i] = std::nextafter(static_cast<T>(a.b), static_cast<T>(a.a));  // rounding to f32 must not reach b
      }
    } else {
      unsupported("random numbers of this dtype");
    }
  });
}

}  // namespace reel::cpu
