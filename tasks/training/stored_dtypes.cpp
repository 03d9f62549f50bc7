#include "tasks/training/stored_dtypes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace reel {

namespace {

struct Half {  // IEEE 754: 5 bits of exponent, 10 of fraction
  std::uint16_t bits;
};
struct BFloat {  // the upper half of an f32
  std::uint16_t bits;
};

float number(Half h) {
  const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
  const float size =
      exponent == 31  ? fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity()
       : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                      : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (h.bits >> 15) != 0 ? -size : size;
}
float number(BFloat b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }
std::int64_t number(std::int64_t n) { return n; }
std::int64_t number(std::int16_t n) { return n; }
std::int64_t number(std::int8_t n) { return n; }
std::int64_t number(std::uint8_t n) { return n; }

template <class From, class To>
std::optional<std::size_t> convert(const char* from, std::size_t n, void* to) {
  for (std::size_t i = 0; i < n; ++i) {
    From stored;  // the file's elements need not be aligned
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    const auto value = number(stored);
    if constexpr (std::is_same_v<To, std::int32_t>) {
      if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max()) return i;
    }
    static_cast<To*>(to)[i] = static_cast<To>(value);
  }
  return {};
}

constexpr StoredDType known[] = {{"F32", 4, DType::f32},
                                 {"F64", 8, DType::f64},
                                 {"C64", 8, DType::c64},
                                 {"I32", 4, DType::i32},
                                 {"BOOL", 1, DType::boolean},
                                 {"F16", 2, DType::f32, convert<Half, float>},
                                 {"BF16", 2, DType::f32, convert<BFloat, float>},
                                 {"I64", 8, DType::i32, convert<std::int64_t, std::int32_t>},
                                 {"I16", 2, DType::i32, convert<std::int16_t, std::int32_t>},
                                 {"I8", 1, DType::i32, convert<std::int8_t, std::int32_t>},
                                 {"U8", 1, DType::i32, convert<std::uint8_t, std::int32_t>}};

}  // namespace

const StoredDType* stored_dtype(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(known), std::end(known), [&](const StoredDType& d) { return d.name == name; });
  return found == std::end(known) ? nullptr : found;
}

std::string stored_dtypes() {
  std::string names;
  for (const StoredDType& d : known) names += (names.empty() ? "" : ", ") + std::string(d.name);
  return names;
}

}  // namespace reel
