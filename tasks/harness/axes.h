// What all curves look like: axes, grid, legend, title, as gnuplot commands.
#pragma once
#include <cmath>
#include <limits>
#include <string>

namespace reel {

/// Lowest and highest of what is drawn; on a logarithmic axis only what is above 0 counts.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void take(double y);
  /// True when the numbers span more than a factor of 20, which a linear axis would press to its bottom.
  bool wide() const { return high > 20 * low; }
};

/// The y axis for this range, from 0 on unless logarithmic.
std::string y_axis(const Range& range, bool logarithmic);
/// The x axis from 0 to `last`, with ticks at 1, 2 or 5 times a power of ten, written as 1.5k, 20M.
std::string x_axis(double last);
/// Border, grid, legend above, title and labels. `legend_rows`: lines that the legend takes.
std::string frame(const std::string& title, const std::string& x_label, const std::string& y_label,
                  int legend_rows = 1);
/// A number for a data block; NaN for one that is not finite.
std::string plotted(double y);

}  // namespace reel
