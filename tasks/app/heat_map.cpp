#include "tasks/app/heat_map.h"

#include <fmt/core.h>

#include <algorithm>

#include "tasks/app/axes.h"
#include "tasks/app/gnuplot.h"

namespace reel {

namespace {

struct Span {
  double low = INFINITY, high = -INFINITY;
  bool both_signs = false;
};

Span span_of(const HeatMap& map) {
  Span s;
  for (const double v : map.values)
    if (std::isfinite(v)) s.low = std::min(s.low, v), s.high = std::max(s.high, v);
  s.both_signs = s.low < 0 && s.high > 0 && std::isnan(map.low) && std::isnan(map.high);
  if (s.both_signs) s.low = -(s.high = std::max(-s.low, s.high));  // 0 in the middle
  if (std::isfinite(map.low)) s.low = map.low;
  if (std::isfinite(map.high)) s.high = map.high;
  return s;
}

/// The values as a data block: x, y, value, text.
std::string block(const HeatMap& map, std::size_t number) {
  std::string out = fmt::format("$map{} << END\n", number);
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const std::size_t row = i / map.columns, column = i % map.columns;
    const double v = map.values[i], x = static_cast<double>(column) * map.x_step,
                 y = static_cast<double>(row) * map.y_step;
    out += fmt::format("{} {} {} {}\n", x, y, std::isfinite(v) ? fmt::format("{}", v) : "NaN",
                       map.texts.empty() ? "\"\"" : gnuplot_datum(map.texts[i]));
  }
  return out + "END\n";
}

/// What one map has of the picture.
struct Panel {
  double title_letters, label_letters;  // of a line
  double lines;                         // of text, in its height
  bool last;                            // only the last one names the x axis, which all share
};

/// Ticks of an axis: gnuplot's own, or fewer where so many lines of text have no room for them.
std::string free_ticks(const char* axis, double low, double high, double lines) {
  constexpr double own = 10, apart = 1.1;  // gnuplot's own ticks at most, lines from one to the next
  if (lines > own * apart) return fmt::format("set {}tics autofreq\n", axis);
  const double most = std::max(3.0, lines / apart);
  double step = round_step((high - low) / own);
  while (std::floor(high / step) - std::ceil(low / step) + 1 > most) step = round_step(1.5 * step);
  return fmt::format("set {}tics {}\n", axis, step);
}

std::string ticks(const char* axis, const std::vector<std::string>& names, std::size_t count, double step,
                  double lines) {
  const double length = static_cast<double>(count) * step;
  if (names.empty() && count > 15 && length > lines) return free_ticks(axis, 0, length, lines);
  if (names.empty()) return fmt::format("set {}tics {}\n", axis, count <= 15 && step == 1 ? "1" : "autofreq");
  std::string named;
  for (std::size_t i = 0; i < names.size(); ++i)
    named += fmt::format("{}{} {}", i ? ", " : "", gnuplot_tick(names[i]), static_cast<double>(i) * step);
  return fmt::format("set {}tics ({}) noenhanced\n", axis, named);
}

/// The commands that draw one map.
std::string panel(const HeatMap& map, std::size_t number, const Panel& in) {
  const auto [title, title_lines] = gnuplot_lines(map.title, in.title_letters);
  const double above = 1.2 + 1.4 * title_lines, below = in.last ? 3.5 : 2, inside = in.lines - above - below;
  const auto [low, high, both_signs] = span_of(map);
  const double right = (static_cast<double>(map.columns) - 0.5) * map.x_step,
               end = (static_cast<double>(map.rows) - 0.5) * map.y_step, left = -0.5 * map.x_step,
               start = -0.5 * map.y_step;
  std::string out =
      fmt::format("set cbrange [{}:{}]\nset xrange [{}:{}]\n", low, high > low ? high : low + 1, left, right);
  out += fmt::format("set yrange [{}:{}]\n", map.upwards ? start : end, map.upwards ? end : start);
  out += both_signs ? "set palette defined (0 '#08306b', 0.25 '#4292c6', 0.5 '#ffffff', 0.75 '#ef3b2c', 1 '#67000d')\n"
                    : "set palette defined (0 '#ffffff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')\n";
  out += ticks("x", map.column_names, map.columns, map.x_step, INFINITY) +
         ticks("y", map.row_names, map.rows, map.y_step, inside) +
         free_ticks("cb", low, high > low ? high : low + 1, inside);
  out += fmt::format("set tmargin {}\nset bmargin {}\n", above, below);
  out += fmt::format("set title {} noenhanced font ',17' textcolor '#222222'\n", title);
  out += fmt::format("set xlabel {} noenhanced textcolor '#444444'\nset ylabel {} noenhanced textcolor '#444444'\n",
                     gnuplot_text(in.last ? map.x_label : ""), gnuplot_text(map.y_label));
  out += fmt::format("set cblabel {} noenhanced textcolor '#444444'\n",
                     gnuplot_lines(map.value_label, in.label_letters).first);
  out += "unset arrow\n";
  for (const double x : map.marks)
    out += fmt::format("set arrow from {0},graph 0 to {0},graph 1 nohead front dashtype 2 linecolor '#444444'\n", x);
  if (map.rows == 1 || map.columns == 1)  // gnuplot draws no image of a lone row or column
    out += fmt::format(
        "plot $map{0} using 1:2:($1-{1}):($1+{1}):($2-{2}):($2+{2}):3 with boxxyerror fillstyle solid noborder "
        "linecolor palette",
        number, map.x_step / 2, map.y_step / 2);
  else  // rectangles keep their edges in every viewer, but thousands of them make a large file
    out += fmt::format("plot $map{} using 1:2:3 with image{}", number, map.values.size() <= 1000 ? " pixels" : "");
  // light text on dark fields
  if (!map.texts.empty())
    out += fmt::format(
        ", \\\n  $map{} using 1:2:(stringcolumn(4)):($3 > {} ? 0xffffff : 0x333333) with labels font ',10' textcolor "
        "rgb variable",
        number, low + 0.55 * (high - low));
  return out + "\n";
}

}  // namespace

std::optional<std::string> draw_heat_maps(const std::string& svg, std::span<const HeatMap> maps,
                                          const PictureStyle& style) {
  std::string data = "set border linecolor '#888888'\nset tics nomirror out scale 0.6 textcolor '#444444'\nunset key\n";
  std::string plot = fmt::format("set multiplot layout {},1\n", maps.size());
  Drawing drawing{maps.empty() ? "" : maps[0].title, "", "", 760,
                  maps.size() == 1 ? 680 : 420 * static_cast<int>(maps.size())};
  const Fit room = fit(style, 0, 0, drawing);
  const double share = 1 / static_cast<double>(maps.size());
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const HeatMap& map = maps[i];
    if (map.values.empty() || map.values.size() != map.rows * map.columns)
      return fmt::format("no picture {}: there are {} values for {} x {} fields", svg, map.values.size(), map.rows,
                         map.columns);
    if (std::none_of(map.values.begin(), map.values.end(), [](double v) { return std::isfinite(v); }))
      return fmt::format("no picture {}: none of the values is finite", svg);
    data += block(map, i);
    plot += panel(map, i,
                  {room.title_letters + 8, room.label_letters * share, room.svg_lines * share, i + 1 == maps.size()});
  }
  drawing.settings = data;
  drawing.plot = plot + "unset multiplot";
  return draw_picture(svg, drawing, style);
}

}  // namespace reel
