// Pictures by gnuplot.
#pragma once
#include <optional>
#include <string>

namespace reel {

/// Text as gnuplot takes it literally.
std::string quoted(const std::string& text);

/// Draws `svg` and a png of the same name beside it, width x height points: `settings` are gnuplot commands, `plot` is
/// the plot command itself. Never throws for want of gnuplot: returns nothing when both pictures are there, else one
/// line that says why not, and leaves what was there before.
std::optional<std::string> draw_picture(const std::string& svg, const std::string& settings, const std::string& plot,
                                        int width = 900, int height = 540);

}  // namespace reel
