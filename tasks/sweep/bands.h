// The picture of a sweep: the best combinations' curves, with bands from the lowest to the highest seed.
#pragma once
#include <string>
#include <vector>

#include "tasks/sweep/results.h"

namespace reel {

/// Draws `svg`, with a png and a pdf next to it; returns why there is no picture, or nothing. A run that cannot be read
/// is left out, and `left_out` gets a line that says why. Throws Error if the picture cannot be written.
std::string draw_bands(const std::string& svg, const Sweep& sweep, const Results& results,
                       std::vector<std::string>& left_out);

}  // namespace reel
