// Checks a MATLAB file for damage, because matio reads whatever is left of a truncated file, trusts its sizes, and
// ignores checksums.
#pragma once
#include <string>
#include <string_view>

namespace reel {

/// Says what is wrong with a file of format 5 (Level 5 MAT-File in MATLAB's documentation). Empty if the file holds
/// only cells, numbers and text, all complete and within the limits: 2^26 numbers, and 2^28 bytes decompressed.
std::string mat_damage(std::string_view bytes);

}  // namespace reel
