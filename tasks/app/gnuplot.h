// Pictures by gnuplot. It reads commands on stdin and returns pictures on stdout. It never gets a path, because it
// takes
// "|command" for a command and ~ for a folder.
#pragma once
#include <optional>
#include <string>

namespace reel {

/// Quotes text so that gnuplot takes it literally; control characters become spaces.
std::string gnuplot_text(const std::string& text);
/// The same for the label of a tick, which gnuplot takes for a number format.
std::string gnuplot_tick(const std::string& text);
/// The same for a string in a data block.
std::string gnuplot_datum(const std::string& text);

/// Draws `svg` and a png of the same name next to it, width x height points. `settings` are gnuplot commands, `plot` is
/// the plot command itself. Returns nothing if both pictures were drawn. If gnuplot is missing or fails, returns one
/// line saying so and leaves existing pictures alone. Throws Error if a picture is incomplete or cannot be written.
std::optional<std::string> draw_picture(const std::string& svg, const std::string& settings, const std::string& plot,
                                        int width = 900, int height = 540);

}  // namespace reel
