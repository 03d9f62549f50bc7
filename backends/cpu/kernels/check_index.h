// The rule for the indices of gathers and scatters.
#pragma once
#include <cstdint>

namespace reel::cpu {

/// Throws RuleError unless 0 <= index[i] < limit for all i < count.
void check_index(const std::int32_t* index, std::int64_t count, std::int64_t limit);

}  // namespace reel::cpu
