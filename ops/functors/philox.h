// Counter-based random numbers (Philox 4x32-10): number i of stream s of a seed depends only on (seed, s, i), so it is
// the same on every device and for any number of threads.
#pragma once
#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "engine/core/dtype.h"

namespace reel {

/// Four 32-bit words for each (seed, stream, counter).
REEL_HD inline std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const r123::Philox4x32 generator;
  const r123::Philox4x32::ctr_type c{{low(counter), high(counter), low(stream), high(stream)}};
  const r123::Philox4x32::key_type k{{low(seed), high(seed)}};
  const auto r = generator(c, k);
  return {r[0], r[1], r[2], r[3]};
}

/// A double in [0, 1) from two words.
REEL_HD inline double unit_double(std::uint32_t a, std::uint32_t b) {
  return static_cast<double>((std::uint64_t{a} << 32 | b) >> 11) * 0x1.0p-53;
}

/// Numbers 2 k and 2 k + 1 of a stream, uniform in [0, 1).
REEL_HD inline std::array<double, 2> uniform_pair(std::uint64_t seed, std::uint64_t stream, std::uint64_t k) {
  const auto w = philox(seed, stream, k);
  return {unit_double(w[0], w[1]), unit_double(w[2], w[3])};
}

/// Numbers 2 k and 2 k + 1 of a stream, standard normal (Box and Muller 1958).
REEL_HD inline std::array<double, 2> normal_pair(std::uint64_t seed, std::uint64_t stream, std::uint64_t k) {
  const auto u = uniform_pair(seed, stream, k);
  const double radius = std::sqrt(-2 * std::log(1 - u[0])), angle = 2 * std::numbers::pi * u[1];
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Number i of a stream.
inline double uniform_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  return uniform_pair(seed, stream, i / 2)[i % 2];
}
inline double normal_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  return normal_pair(seed, stream, i / 2)[i % 2];
}

/// The numbers of one stream in order, on the host, for data generators.
class Stream {
 public:
  Stream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint32_t word() {
    if (used_ == 4) words_ = philox(seed_, stream_, counter_++), used_ = 0;
    return words_[used_++];
  }
  /// Uniform in [0, 1).
  double uniform() {
    const std::uint32_t a = word(), b = word();
    return unit_double(a, b);
  }
  /// Uniform in 0..n-1, without bias; n >= 1.
  std::int64_t below(std::int64_t n) {
    const auto range = static_cast<std::uint64_t>(n);
    const std::uint64_t rejected = (0 - range) % range;  // 2^64 mod n
    while (true) {
      const std::uint64_t a = word(), b = word(), x = a << 32 | b;
      if (x >= rejected) return static_cast<std::int64_t>(x % range);
    }
  }

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = 4;
};

}  // namespace reel
