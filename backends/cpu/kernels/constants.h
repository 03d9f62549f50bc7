// Numbers as compile-time constants, so that loops over few elements are unrolled.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

namespace reel::cpu {

template <std::int64_t n>
using Constant = std::integral_constant<std::int64_t, n>;

/// Calls f with n as a Constant if it is one of first, ..., last; returns whether it is.
template <std::int64_t first, std::int64_t last, class F>
bool with_constant(std::int64_t n, F&& f) {
  return [&]<std::int64_t... k>(std::integer_sequence<std::int64_t, k...>) {
    return ((n == first + k && (f(Constant<first + k>{}), true)) || ...);
  }
  (std::make_integer_sequence<std::int64_t, last - first + 1>{});
}

}  // namespace reel::cpu
