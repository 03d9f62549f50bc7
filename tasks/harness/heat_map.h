// The picture of a matrix, or of several, one below the other.
#pragma once
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reel {

struct HeatMap {
  std::string title, x_label, y_label;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // [rows, columns], row 0 on top; not finite: nothing is drawn there
  std::vector<std::string> row_names{}, column_names{};  // of the fields; none: their numbers
  double low = NAN, high = NAN;                          // what is lightest and darkest; NaN: lowest and highest value
  std::vector<std::string> texts{};                      // written into the fields, as many as values; none: no texts
  double x_step = 1, y_step = 1;                         // how far a field is from the next, in units of the axes
  bool upwards = false;                                  // row 0 at the bottom
  std::vector<double> marks{};                           // upright lines at these x
};

/// Draws `svg` and a png of the same name beside it. From low to high is from white to dark blue; where values are of
/// both signs, and low and high are not given, 0 is white, what is below it blue, above it red. Returns one line that
/// says why there is no picture, or nothing.
std::optional<std::string> draw_heat_maps(const std::string& svg, std::span<const HeatMap> maps);
inline std::optional<std::string> draw_heat_map(const std::string& svg, const HeatMap& map) {
  return draw_heat_maps(svg, {&map, 1});
}

}  // namespace reel
