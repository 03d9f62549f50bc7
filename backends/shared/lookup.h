// What every backend says of an index that is out of range.
#pragma once
#include <fmt/format.h>

#include <string>

namespace reel {

/// `limit`: indices are 0 .. limit - 1.
inline std::string index_text(std::int64_t index, std::int64_t place, std::int64_t limit) {
  if (limit == 0) return fmt::format("index {} at place {}, but there is nothing to look up", index, place);
  return fmt::format("index {} at place {} is not in 0..{}", index, place, limit - 1);
}

}  // namespace reel
