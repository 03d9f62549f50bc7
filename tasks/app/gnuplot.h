// Pictures by gnuplot. It reads commands on stdin and returns pictures on stdout. It never gets a path, because it
// takes
// "|command" for a command and ~ for a folder.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "tasks/app/picture_style.h"

namespace reel {

/// The number of letters of a text in UTF-8.
std::size_t letters_of(const std::string& text);
/// The text, or its first and last letters with an ellipsis between them, `most` in all.
std::string shortened(const std::string& text, std::size_t most);
/// Quotes text so that gnuplot takes it literally; control characters become spaces.
std::string gnuplot_text(const std::string& text);
/// The same, broken between words into lines of so many letters at most, and the number of lines.
std::pair<std::string, int> gnuplot_lines(const std::string& text, double letters);
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

/// Pixels of 1/96 inch: width and height of the picture.
std::pair<double, double> pixels_of(const Drawing& drawing, const PictureStyle& style);

/// Draws `svg`, and a png and a pdf of the same name next to it. Returns nothing if all pictures were drawn. If gnuplot
/// is missing or fails, returns one line saying so and leaves existing pictures alone. Throws Error if a picture is
/// incomplete or cannot be written.
std::optional<std::string> draw_picture(const std::string& svg, const Drawing& drawing, const PictureStyle& style = {});

}  // namespace reel
