// Pictures by gnuplot. It reads commands on stdin and returns pictures on stdout. It never gets a path, because it
// takes
// "|command" for a command and ~ for a folder.
#pragma once
#include <optional>
#include <string>

#include "tasks/app/picture_style.h"

namespace reel {

/// Quotes text so that gnuplot takes it literally; control characters become spaces.
std::string gnuplot_text(const std::string& text);
/// The same for the label of a tick, which gnuplot takes for a number format.
std::string gnuplot_tick(const std::string& text);
/// The same for a string in a data block.
std::string gnuplot_datum(const std::string& text);

struct Drawing {
  std::string title;              // what the picture shows: a browser's tooltip, and what a screen reader says
  std::string settings;           // gnuplot commands
  std::string plot;               // the plot command itself
  int width = 900, height = 540;  // its own size, in pixels of 1/96 inch; text of 14 pixels fits it
};

/// Draws `svg`, and a png and a pdf of the same name next to it. Returns nothing if all pictures were drawn. If gnuplot
/// is missing or fails, returns one line saying so and leaves existing pictures alone. Throws Error if a picture is
/// incomplete or cannot be written.
std::optional<std::string> draw_picture(const std::string& svg, const Drawing& drawing, const PictureStyle& style = {});

}  // namespace reel
