// The picture of a sweep: the best combinations' curves, with bands from the lowest to the highest seed.
#pragma once
#include <string>

#include "tasks/sweep/results.h"

namespace reel {

/// Draws `svg`, with a png and a pdf next to it; returns why there is no picture, or nothing. Throws Error if it cannot
/// be written.
std::string draw_bands(const std::string& svg, const Sweep& sweep, const Results& results);

}  // namespace reel
