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

void Range::take(double y) {
  if (!std::isfinite(y) || y <= 0) return;
  low = std::min(low, y);
  high = std::max(high, y);
}

std::string y_axis(const Range& range, bool logarithmic) {
  if (logarithmic && range.high > 0)
    return fmt::format("set logscale y\nset format y '%g'\nset mytics 10\nset yrange [{}:{}]\n", range.low / 1.4,
                       range.high * 1.4);
  return fmt::format("set yrange [0:{}]\n", range.high > 0 ? range.high * 1.08 : 1);
}

std::string x_axis(double last) {
  // gnuplot's own labels would be 20000, 40000, or would round 1.5k to 2k
  const double rough = last / 6, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= rough) step = factor * power;
  std::string ticks;
  for (int i = 0; i * step <= last * 1.0001; ++i)
    ticks += fmt::format("{}{} {}", i ? ", " : "", gnuplot_tick(short_number(i * step)), i * step);
  return fmt::format("set xrange [0:{}]\nset xtics ({})\n", last, ticks);
}

std::string frame(const std::string& title, const std::string& x_label, const std::string& y_label, int legend_rows) {
  std::string out = fmt::format(
      "set border 3 linecolor '#888888'\nset tics nomirror out scale 0.6 textcolor '#444444'\n"
      "set grid xtics ytics mytics linetype 1 linewidth 0.8 linecolor '#e0e0e0', linetype 1 linewidth 0.5 linecolor "
      "'#f0f0f0'\n"
      "set key at graph 0, graph 1.015 left bottom horizontal Left reverse samplen 2.4 width -1 textcolor '#333333' "
      "noenhanced\n"
      "set lmargin 11\nset rmargin 4\nset tmargin {}\nset bmargin 4\n",
      4 + legend_rows);
  out += fmt::format("set label 1 {} at graph 0, graph {} left noenhanced font ',17' textcolor '#222222'\n",
                     gnuplot_text(title), 1.075 + 0.05 * legend_rows);
  out += fmt::format("set xlabel {} noenhanced offset 0,-0.3 textcolor '#444444'\n", gnuplot_text(x_label));
  out += fmt::format("set ylabel {} noenhanced offset -0.8,0 textcolor '#444444'\n", gnuplot_text(y_label));
  return out;
}

std::string plotted(double y) { return std::isfinite(y) ? fmt::format("{}", y) : "NaN"; }

}  // namespace reel
