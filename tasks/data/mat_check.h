// Is a MATLAB file whole? matio reads what is there of one that is cut off, takes sizes as they stand, and looks at no
// checksum.
#pragma once
#include <string>
#include <string_view>

namespace reel {

/// What is wrong with a file of format 5 (Level 5 MAT-File, as MATLAB's documentation has it); empty when it holds
/// nothing but cells, numbers and text, all of it whole, and not more than can be read: 2^26 numbers, 2^28 bytes
/// unpacked.
std::string mat_damage(std::string_view bytes);

}  // namespace reel
