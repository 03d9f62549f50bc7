// The picture of a run: loss against examples, with the baseline, drawn by gnuplot.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tasks/app/picture_style.h"
#include "tasks/app/run_folder.h"

namespace reel {

/// Draws `svg`, and a png and a pdf of the same name next to it. Returns nothing on success, else one line saying why
/// there is no picture; throws Error if it cannot be written.
std::optional<std::string> draw_curve(const std::string& svg, const std::string& title,
                                      const std::vector<RunFolder::Row>& rows, double baseline,
                                      const PictureStyle& style = {});

}  // namespace reel
