#include "tasks/app/axes.h"

#include <fmt/core.h>

#include <algorithm>

#include "tasks/app/gnuplot.h"

namespace reel {

namespace {

/// 1500 -> "1.5k".
std::string short_number(double x) {
  for (const auto& [unit, letter] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (std::abs(x) >= unit) return fmt::format("{:.6g}{}", x / unit, letter);
  return fmt::format("{:.6g}", x);
}

}  // namespace

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= least) step = factor * power;
  return step;
}

void Range::take(double y) {
  if (!std::isfinite(y)) return;
  low = std::min(low, y);
  if (y > 0) low_above_0 = std::min(low_above_0, y);
  high = std::max(high, y);
}

std::string y_axis(const Range& range, bool logarithmic, double text_lines) {
  if (logarithmic && range.high > 0)
    return fmt::format("set logscale y\nset format y '%g'\nset mytics 10\nset yrange [{}:{}]\n",
                       range.low_above_0 / 1.4, range.high * 1.4);
  double bottom = 0, top = range.high > 0 ? range.high * 1.08 : 1;
  if (range.low < 0) {
    const double room = 0.08 * (range.high > range.low ? range.high - range.low : -range.low);
    bottom = range.low - room;
    top = range.high + room;
  }
  return fmt::format("set yrange [{}:{}]\nset ytics {}\n", bottom, top,
                     round_step((top - bottom) / std::clamp(text_lines / 4, 3.0, 10.0)));
}

std::string y_axis_of_shares() {
  std::string ticks;
  for (int tenths = 0; tenths <= 10; tenths += 2)
    ticks += fmt::format("{}{} {}", tenths ? ", " : "", gnuplot_tick(fmt::format("{} %", 10 * tenths)), 0.1 * tenths);
  return fmt::format("set yrange [0:1]\nset ytics ({})\n", ticks);
}

std::string x_axis(double first, double last) {
  // gnuplot's own labels would be 20000, 40000, or would round 1.5k to 2k
  const double step = round_step((last > first ? last - first : last) / 6);
  const double start = last > first ? step * std::floor(first / step) : 0;
  std::string ticks;
  for (int i = 0; start + i * step <= last * 1.0001; ++i)
    ticks += fmt::format("{}{} {}", i ? ", " : "", gnuplot_tick(short_number(start + i * step)), start + i * step);
  return fmt::format("set xrange [{}:{}]\nset xtics ({})\n", start, last, ticks);
}

std::string frame(const std::string& title, const std::string& x_label, const std::string& y_label, const Fit& room) {
  const auto [heading, lines] = gnuplot_lines(title, room.title_letters);
  const double more = 1.3 * (lines - 1);
  std::string out = fmt::format(
      "set border 3 linecolor '#888888'\nset tics nomirror out scale 0.6 textcolor '#444444'\n"
      "set grid xtics ytics mytics linetype 1 linewidth 0.8 linecolor '#e0e0e0', linetype 1 linewidth 0.5 linecolor "
      "'#f0f0f0'\n"
      "set key at graph 0, graph 1 left bottom horizontal Left reverse samplen 2.4 width -1 textcolor '#333333' "
      "noenhanced\n"
      "set lmargin 11.5\nset rmargin 3\nset tmargin {}\nset bmargin 3.5\n",
      (title.empty() ? 1.2 : 3.2 + more) + room.legend_rows);
  out += fmt::format("set key maxcols {}\n", room.legend_columns);
  // in lines of text above the plot, so that it stands above the legend at any size of the picture
  if (!title.empty())
    out +=
        fmt::format("set label 1 {} at graph 0, graph 1 offset 0,{} left noenhanced font ',17' textcolor '#222222'\n",
                    heading, 1.55 + more + room.legend_rows);
  out += fmt::format("set xlabel {} noenhanced offset 0,-0.2 textcolor '#444444'\n", gnuplot_text(x_label));
  out += fmt::format("set ylabel {} noenhanced offset -0.4,0 textcolor '#444444'\n", gnuplot_text(y_label));
  return out;
}

Fit fit(const PictureStyle& style, std::size_t entries, std::size_t widest, const Drawing& drawing) {
  // gnuplot's units for text of 14 pixels, the largest of the three pictures: those of an SVG. Most letters are
  // narrower.
  const double scale = points_of(style) / 10.5, letter = 9.8 * scale, line = 21 * scale;
  constexpr double margins = 14.5, sample = 4.2, narrower = 0.8;
  const auto [width, height] = pixels_of(drawing, style);
  const double letters = width / letter - margins, lines = height / line;
  Fit out{};
  out.svg_lines = lines;
  out.text_lines = lines * 38 / 25.7;
  out.name_letters = static_cast<std::size_t>(std::max(8.0, (letters + 2 - sample) / narrower));
  out.title_letters = (letters + 2) / (narrower * 17 / 14);  // of 17 pixels
  out.label_letters = height / letter / narrower;
  const double entry = static_cast<double>(std::min(widest, out.name_letters)) + sample;
  out.legend_columns = std::max(1, static_cast<int>(letters / entry));
  const int count = static_cast<int>(entries);
  out.legend_rows = (count + out.legend_columns - 1) / out.legend_columns;
  out.growth = std::max(0.0, out.legend_rows - std::floor(lines / 4)) * line;  // a quarter is the legend's
  return out;
}

std::optional<std::string> draw_grown(const std::string& svg, Drawing drawing, PictureStyle style, const Fit& room) {
  drawing.height += static_cast<int>(room.growth);
  if (style.height > 0) style.height += room.growth * 2.54 / 96;
  return draw_picture(svg, drawing, style);
}

std::string plotted(double y) { return std::isfinite(y) ? fmt::format("{}", y) : "NaN"; }

}  // namespace reel
