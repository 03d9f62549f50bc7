// Axes, grid, legend and title shared by all curves, as gnuplot commands.
#pragma once
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "tasks/app/gnuplot.h"
#include "tasks/app/picture_style.h"

namespace reel {

/// The lowest and highest plotted value, and the lowest above 0, where a logarithmic axis starts.
struct Range {
  double low = std::numeric_limits<double>::infinity(), low_above_0 = low, high = -low;
  void take(double y);
  /// True if no value is below 0 and those above span more than a factor of 20, which a linear axis would squeeze to
  /// its bottom.
  bool wide() const { return low >= 0 && high > 20 * low_above_0; }
};

/// The y axis for this range. A linear one starts at 0, unless values are below; a logarithmic one is linear if no
/// value is above 0. A picture of few lines of text has fewer ticks.
std::string y_axis(const Range& range, bool logarithmic, double text_lines = 38);
/// The y axis of a share: from 0 to 1, in per cent.
std::string y_axis_of_shares();
/// The x axis from the last tick before `first` to `last`, with ticks at 1, 2 or 5 times a power of ten, written like
/// 1.5k, 20M.
std::string x_axis(double first, double last);
/// What fits into a picture.
struct Fit {
  double text_lines;  // its height in lines of text
  double svg_lines;   // those of an SVG, which are higher
  int legend_columns, legend_rows;
  double title_letters, label_letters;  // of a line of the title, of a line along the height
  std::size_t name_letters;             // of the longest name that fits into a line of the legend
  double growth;                        // pixels that a long legend adds to the height, so that the plot keeps its own
};
/// For a legend of so many entries, the longest of so many letters; the width and height of `drawing` count.
Fit fit(const PictureStyle& style, std::size_t entries, std::size_t widest, const Drawing& drawing = {});
/// Border, grid, legend above, title and labels.
std::string frame(const std::string& title, const std::string& x_label, const std::string& y_label, const Fit& room);
/// Draws like draw_picture, in a picture that is higher by `room.growth`.
std::optional<std::string> draw_grown(const std::string& svg, Drawing drawing, PictureStyle style, const Fit& room);
/// The least of 1, 2 or 5 times a power of ten that is not below `least`, for ticks.
double round_step(double least);
/// A value for a data block; NaN if it is not finite.
std::string plotted(double y);

}  // namespace reel
