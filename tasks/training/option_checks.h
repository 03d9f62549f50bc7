// Checks of options that C++ or Python gives; the command line has bounds of its own. Each throws SettingError.
#pragma once
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/error.h"

namespace reel {

/// One of these texts.
inline void require_one_of(const std::string& name, const std::string& value, const std::vector<std::string>& all) {
  if (std::find(all.begin(), all.end(), value) == all.end())
    throw SettingError(name, fmt::format("\"{}\" is not one of {}", value, fmt::join(all, ", ")));
}

/// `low` or more.
inline void require_least(const std::string& name, std::int64_t value, std::int64_t low) {
  if (value < low) throw SettingError(name, fmt::format("{} or more is needed, got {}", low, value));
}

/// A finite number from 0 to `high`, which may be infinite.
inline void require_within(const std::string& name, double value, double high) {
  if (value >= 0 && value <= high && std::isfinite(value)) return;
  throw SettingError(name, std::isinf(high) ? fmt::format("a finite number of 0 or more is needed, got {}", value)
                                            : fmt::format("0 to {} is needed, got {}", high, value));
}

}  // namespace reel
