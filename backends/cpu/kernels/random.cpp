// Random fills with the generator of ops/functors/philox.h, which makes two values at a time; here as many pairs at a
// time as a vector has lanes.
#include "backends/shared/random.h"

#include <array>
#include <bit>
#include <numeric>

#include "backends/cpu/cpu.h"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/vectors.h"
#include "engine/core/error.h"
#include "ops/functors/math.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t width = lanes<double>;
using Doubles = Vector<double>;
using Words = Vector<std::uint64_t>;  // of 32 bits; the others are whatever comes
using Pairs = std::array<Doubles, 2>;
constexpr std::uint64_t low = 0xffffffff;

/// The products, of 64 bits.
Words product(Words a, std::uint64_t b) {
#ifdef __AVX512F__  // GCC would multiply 64 bits by 64
  return std::bit_cast<Words>(
      _mm512_mul_epu32(std::bit_cast<__m512i>(a), _mm512_set1_epi64(static_cast<long long>(b))));
#else
  return (a & low) * b;
#endif
}

/// Numbers 2 k and 2 k + 1 of a stream for k = first, first + 1, ..., as uniform_pair makes them.
Pairs uniform_pairs(std::uint64_t seed, std::uint64_t stream, std::uint64_t first) {
  static constexpr auto steps = [] {
    std::array<std::uint64_t, width> k{};
    std::iota(k.begin(), k.end(), 0);
    return k;
  }();
  const Words counter = load(steps.data()) + first;
  Words w0 = counter, w1 = counter >> 32, w2 = Words{} + stream, w3 = Words{} + (stream >> 32);
  Words key = Words{} + seed, other = Words{} + (seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Words a = product(w0, PHILOX_M4x32_0), b = product(w2, PHILOX_M4x32_1);
    w0 = (b >> 32) ^ w1 ^ key;
    w1 = b;
    w2 = (a >> 32) ^ w3 ^ other;
    w3 = a;
    key += PHILOX_W32_0;
    other += PHILOX_W32_1;
  }
  const auto unit = [](Words a, Words b) {
    using Signed = Vector<std::int64_t>;
    return __builtin_convertvector(std::bit_cast<Signed>((a << 32 | (b & low)) >> 11), Doubles) * 0x1.0p-53;
  };
  return {unit(w0, w1), unit(w2, w3)};
}

/// Likewise as normal_pair makes them.
Pairs normal_pairs(std::uint64_t seed, std::uint64_t stream, std::uint64_t first) {
  using Batch = xsimd::batch<double>;
  static_assert(sizeof(Batch) == sizeof(Doubles));
  const auto u = uniform_pairs(seed, stream, first);
  const auto batch = [](const Doubles& v) { return Batch::load_unaligned(reinterpret_cast<const double*>(&v)); };
  const Batch radius = xsimd::sqrt(Batch(-2.0) * math::logarithm(batch(1 - u[0])));
  const auto [sine, cosine] = xsimd::sincos(batch(2 * std::numbers::pi * u[1]));
  Pairs out;
  (radius * cosine).store_unaligned(reinterpret_cast<double*>(&out[0]));
  (radius * sine).store_unaligned(reinterpret_cast<double*>(&out[1]));
  return out;
}

/// out[i] = f(the i-th random value)
template <class T, auto pairs, class F>
void fill_with(const RandomArgs& a, F&& f) {
  constexpr std::int64_t block = 256;
  constexpr auto first = [](std::int64_t k) { return k / 2 + k % 2 * width; };
  constexpr auto second = [](std::int64_t k) { return (k + width) / 2 + k % 2 * width; };
  double numbers[block];
  for (std::int64_t i = 0; i < a.n; i += block) {
    const std::int64_t some = std::min(block, a.n - i);
    for (std::int64_t k = 0; k < some; k += 2 * width) {
      const Pairs p = pairs(a.seed, a.stream, static_cast<std::uint64_t>((i + k) / 2));
      store(numbers + k, shuffled<double, first>(p[0], p[1]));
      store(numbers + k + width, shuffled<double, second>(p[0], p[1]));
    }
    T* const out = static_cast<T*>(a.out) + i;
    for (std::int64_t k = 0; k < some; ++k) out[k] = f(numbers[k]);
  }
}

template <class T>
void fill_floating(const RandomArgs& a) {
  if (a.distribution == Distribution::normal)
    return fill_with<T, normal_pairs>(a, [&](double z) { return static_cast<T>(a.a + a.b * z); });
  fill_with<T, uniform_pairs>(a, [&](double u) { return uniform_between<T>(u, a.a, a.b); });
}

}  // namespace

void Cpu::random(const RandomArgs& args) {
  RandomArgs a = args;
  if (a.offset) a.stream += static_cast<std::uint64_t>(*a.offset);
  switch (a.distribution) {
    case Distribution::bernoulli:
      return fill_with<bool, uniform_pairs>(a, [&](double u) { return u < a.a; });
    case Distribution::integers:
      return fill_with<std::int32_t, uniform_pairs>(a, [&](double u) { return integer_between(u, a.a, a.b); });
    default:
      return dispatch_floating(a.dtype, [&]<class T>(std::type_identity<T>) { fill_floating<T>(a); });
  }
}

}  // namespace reel::cpu
