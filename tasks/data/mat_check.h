// Is a MATLAB file whole? matio reads what is there of one that is cut off, takes sizes as they stand, and looks at no
// checksum.
#pragma once
#include <string>

namespace reel {

/// What is wrong with a file of format 5 (Level 5 MAT-File, as MATLAB's documentation has it); empty when all is well,
/// or it is of another format.
std::string mat_damage(const std::string& bytes);

}  // namespace reel
