// Draws a matrix, or several, one below the other.
#pragma once
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/app/picture_style.h"

namespace reel {

struct HeatMap {
  std::string title, x_label, y_label;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // [rows, columns], row 0 on top; values that are not finite stay blank
  std::vector<std::string> row_names{}, column_names{};  // labels; none: their indices
  double low = NAN, high = NAN;                          // lightest and darkest value; NaN: lowest and highest value
  std::vector<std::string> texts{};                      // written into the fields, one per value; none: no texts
  std::string value_label{};                             // beside the colour bar
  double x_step = 1, y_step = 1;                         // distance between neighbouring fields, in units of the axes
  bool upwards = false;                                  // row 0 at the bottom
  std::vector<double> marks{};                           // vertical lines at these x
};

/// Draws `svg`, and a png and a pdf of the same name next to it. Colours go from white at low to dark blue at high. If
/// the values have both signs, and low and high are not given, 0 is white, negative values are blue and positive ones
/// red. Returns one line saying why there is no picture, or nothing.
std::optional<std::string> draw_heat_maps(const std::string& svg, std::span<const HeatMap> maps,
                                          const PictureStyle& style = {});
inline std::optional<std::string> draw_heat_map(const std::string& svg, const HeatMap& map,
                                                const PictureStyle& style = {}) {
  return draw_heat_maps(svg, {&map, 1}, style);
}

}  // namespace reel
