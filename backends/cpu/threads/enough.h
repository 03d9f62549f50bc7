// From how much work on a second thread pays.
#pragma once
#include <algorithm>
#include <cstdint>

namespace reel::cpu {

/// Fewest elements of an elementwise kernel.
inline constexpr std::int64_t enough_elements = 1 << 15;

/// Fewest rows of n elements of a kernel for which so many elements are enough.
inline std::int64_t enough_rows(std::int64_t n, std::int64_t elements) {
  return elements / std::max<std::int64_t>(n, 1) + 1;
}

}  // namespace reel::cpu
