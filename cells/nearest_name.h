// Hints for names that are not known.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// The known name that is nearest to the given one, in letters of either case; empty if none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

/// The Levenshtein distance between a and b.
std::size_t letters_changed(const std::string& a, const std::string& b);

}  // namespace reel
