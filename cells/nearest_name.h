// Hints for unknown names.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// The known name nearest to the given one, ignoring case; empty if none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

/// The Levenshtein distance between a and b.
std::size_t letters_changed(const std::string& a, const std::string& b);

}  // namespace reel
