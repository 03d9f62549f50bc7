// Random streams for the tests of tasks: one for each example of a batch.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

namespace reel::test {

/// 0, 1, ..., n - 1
inline std::vector<std::uint64_t> streams(std::uint64_t n) {
  std::vector<std::uint64_t> s(n);
  std::iota(s.begin(), s.end(), 0);
  return s;
}

}  // namespace reel::test
