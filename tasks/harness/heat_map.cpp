#include "tasks/harness/heat_map.h"

#include <fmt/core.h>

#include <cmath>

#include "tasks/harness/gnuplot.h"

namespace reel {

std::optional<std::string> draw_heat_map(const std::string& svg, const HeatMap& map) {
  if (map.values.empty() || map.values.size() != map.rows * map.columns)
    return fmt::format("no picture {}: there are {} values for {} x {} fields", svg, map.values.size(), map.rows,
                       map.columns);
  std::string out = "$map << END\n";
  double low = INFINITY, high = -INFINITY;
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const double v = map.values[i];
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    out += fmt::format("{} {} {} \"{}\"\n", i % map.columns, i / map.columns,
                       std::isfinite(v) ? fmt::format("{}", v) : "NaN", map.texts.empty() ? "" : map.texts[i]);
  }
  if (!std::isfinite(low)) return fmt::format("no picture {}: none of the values is finite", svg);
  if (std::isfinite(map.low)) low = map.low;
  if (std::isfinite(map.high)) high = map.high;
  out += fmt::format("END\nset cbrange [{}:{}]\n", low, high > low ? high : low + 1);
  out += fmt::format("set xrange [-0.5:{}]\nset yrange [{}:-0.5]\n", static_cast<double>(map.columns) - 0.5,
                     static_cast<double>(map.rows) - 0.5);
  out +=
      "set palette defined (0 '#ffffff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')\n"
      "set border linecolor '#888888'\nset tics nomirror out scale 0.6 textcolor '#444444'\nunset key\n";
  const auto ticks = [&](const char* axis, const std::vector<std::string>& names, std::size_t count) {
    if (names.empty() && count <= 30) out += fmt::format("set {}tics 1\n", axis);
    std::string named;
    for (std::size_t i = 0; i < names.size(); ++i) named += fmt::format("{}{} {}", i ? ", " : "", quoted(names[i]), i);
    if (!names.empty()) out += fmt::format("set {}tics ({}) noenhanced\n", axis, named);
  };
  ticks("x", map.column_names, map.columns);
  ticks("y", map.row_names, map.rows);
  out += fmt::format("set title {} noenhanced font ',17' textcolor '#222222'\n", quoted(map.title));
  out += fmt::format("set xlabel {} noenhanced textcolor '#444444'\nset ylabel {} noenhanced textcolor '#444444'\n",
                     quoted(map.x_label), quoted(map.y_label));
  std::string plot = "plot $map using 1:2:3 with image";
  // light text on dark fields
  const double middle = low + 0.55 * (high - low);
  if (!map.texts.empty())
    plot += fmt::format(
        ", \\\n  $map using 1:2:(stringcolumn(4)):($3 > {} ? 0xffffff : 0x333333) with labels font ',10' textcolor rgb "
        "variable",
        middle);
  return draw_picture(svg, out, plot, 760, 680);
}

}  // namespace reel
