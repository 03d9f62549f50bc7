// The picture of a matrix.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace reel {

struct HeatMap {
  std::string title, x_label, y_label;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // [rows, columns], row 0 on top; not finite: nothing is drawn there
  std::vector<std::string> row_names{}, column_names{};  // of the fields; none: their numbers
  double low = NAN, high = NAN;                          // what is white and dark blue; NaN: lowest and highest value
  std::vector<std::string> texts{};                      // written into the fields, as many as values; none: no texts
};

/// Draws `svg` and a png of the same name beside it, the lowest value white, the highest dark blue; returns one line
/// that says why there is no picture, or nothing.
std::optional<std::string> draw_heat_map(const std::string& svg, const HeatMap& map);

}  // namespace reel
