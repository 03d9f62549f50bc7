// Random fills with the generator of engine/core/random.h, which makes two values at a time.
#include "backends/shared/random.h"
#include "backends/cpu/cpu.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

using Pair = std::array<double, 2> (*)(std::uint64_t seed, std::uint64_t stream, std::uint64_t k);

/// out[i] = f(the i-th random value)
template <class T, class F>
void fill_with(const RandomArgs& a, Pair pair, F&& f) {
  T* out = static_cast<T*>(a.out);
  for (std::int64_t i = 0; i < a.n; i += 2) {
    const auto numbers = pair(a.seed, a.stream, static_cast<std::uint64_t>(i / 2));
    out[i] = f(numbers[0]);
    if (i + 1 < a.n) out[i + 1] = f(numbers[1]);
  }
}

template <class T>
void fill_floating(const RandomArgs& a) {
  if (a.distribution == Distribution::normal)
    return fill_with<T>(a, normal_pair, [&](double z) { return static_cast<T>(a.a + a.b * z); });
  fill_with<T>(a, uniform_pair, [&](double u) { return uniform_between<T>(u, a.a, a.b); });
}

}  // namespace

void Cpu::random(const RandomArgs& args) {
  RandomArgs a = args;
  if (a.offset) a.stream += static_cast<std::uint64_t>(*a.offset);
  switch (a.distribution) {
    case Distribution::bernoulli:
      return fill_with<bool>(a, uniform_pair, [&](double u) { return u < a.a; });
    case Distribution::integers:
      return fill_with<std::int32_t>(a, uniform_pair, [&](double u) { return integer_between(u, a.a, a.b); });
    default:
      return dispatch_floating(a.dtype, [&]<class T>(std::type_identity<T>) { fill_floating<T>(a); });
  }
}

}  // namespace reel::cpu
