// Pictures by gnuplot. It is given commands and gives pictures, both through us: no path ever reaches it, since it
// would take "|command" for a command and ~ for a folder.
#pragma once
#include <optional>
#include <string>

namespace reel {

/// Text as gnuplot takes it literally; control characters are spaces there.
std::string gnuplot_text(const std::string& text);
/// The same for the name of a tick, which gnuplot takes for a format of numbers.
std::string gnuplot_tick(const std::string& text);
/// The same for a string in a block of data.
std::string gnuplot_datum(const std::string& text);

/// Draws `svg` and a png of the same name beside it, width x height points: `settings` are gnuplot commands, `plot` is
/// the plot command itself. Returns nothing when both pictures are there. Where gnuplot is not there or fails: one line
/// that says so, and what was there before stays. Throws Error when a picture is not whole or cannot be written.
std::optional<std::string> draw_picture(const std::string& svg, const std::string& settings, const std::string& plot,
                                        int width = 900, int height = 540);

}  // namespace reel
