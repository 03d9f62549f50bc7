#include "tasks/harness/figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/harness/gnuplot.h"

namespace reel {

namespace {

constexpr double log_from = 20;  // a loss that spans more than this factor is drawn on a logarithmic axis
constexpr const char* train_color = "#8fb8de";
constexpr const char* valid_color = "#1f5f9e";
constexpr const char* baseline_color = "#c0392b";

/// 1500 -> "1.5k".
std::string short_number(double x) {
  for (const auto& [unit, letter] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (std::abs(x) >= unit) return fmt::format("{:.6g}{}", x / unit, letter);
  return fmt::format("{:.6g}", x);
}

/// Ticks at 1, 2 or 5 times a power of ten: gnuplot's own labels would be 20000, 40000, or round 1.5k to 2k.
std::string ticks(double high) {
  const double rough = high / 6, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= rough) step = factor * power;
  std::string out;
  for (int i = 0; i * step <= high * 1.0001; ++i)
    out += fmt::format("{}{} {}", i ? ", " : "", quoted(short_number(i * step)), i * step);
  return out;
}

/// Lowest and highest of what is drawn; on a logarithmic axis only what is above 0 counts.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void take(double y) {
    if (!std::isfinite(y) || y <= 0) return;
    low = std::min(low, y);
    high = std::max(high, y);
  }
};

}  // namespace

std::optional<std::string> draw_curve(const std::string& svg, const std::string& title,
                                      const std::vector<RunFolder::Row>& rows, double baseline,
                                      const std::string& x_label, const std::string& y_label) {
  if (rows.empty()) return fmt::format("no picture {}: there is no validation yet", svg);
  const bool with_baseline = std::isfinite(baseline) && baseline > 0;
  Range range;
  if (with_baseline) range.take(baseline);
  double last = 1;
  std::string out = "$rows << END\n";
  const auto number = [](double y) { return std::isfinite(y) ? fmt::format("{}", y) : "NaN"; };
  for (const RunFolder::Row& row : rows) {
    out += fmt::format("{} {} {}\n", row.examples, number(row.train_loss), number(row.valid_loss));
    range.take(row.train_loss);
    range.take(row.valid_loss);
    last = std::max(last, static_cast<double>(row.examples));
  }
  out += "END\n";
  const bool logarithmic = range.high > log_from * range.low;
  if (logarithmic)
    out += fmt::format("set logscale y\nset format y '%g'\nset mytics 10\nset yrange [{}:{}]\n", range.low / 1.4,
                       range.high * 1.4);
  else
    out += fmt::format("set yrange [0:{}]\n", range.high > 0 ? range.high * 1.08 : 1);

  out += fmt::format("set xrange [0:{}]\nset xtics ({})\n", last, ticks(last));
  out +=
      "set border 3 linecolor '#888888'\nset tics nomirror out scale 0.6 textcolor '#444444'\n"
      "set grid xtics ytics mytics linetype 1 linewidth 0.8 linecolor '#e0e0e0', linetype 1 linewidth 0.5 linecolor "
      "'#f0f0f0'\n"
      "set key at graph 0, graph 1.015 left bottom horizontal Left reverse samplen 2.4 width -1 textcolor '#333333' "
      "noenhanced\n"
      "set lmargin 11\nset rmargin 4\nset tmargin 5\nset bmargin 4\n";
  out += fmt::format("set label 1 {} at graph 0, graph 1.125 left noenhanced font ',17' textcolor '#222222'\n",
                     quoted(title));
  out += fmt::format("set xlabel {} noenhanced offset 0,-0.3 textcolor '#444444'\n", quoted(x_label));
  out += fmt::format("set ylabel {} noenhanced offset -0.8,0 textcolor '#444444'\n", quoted(y_label));

  const char* points = rows.size() <= 40 ? "linespoints pointtype 7 pointsize 0.55" : "lines";
  const char* train = rows.size() == 1 ? "points pointtype 7 pointsize 0.8" : "lines linewidth 1.3";
  std::string plot = fmt::format("plot $rows using 1:2 with {} linecolor '{}' title 'train', \\\n", train, train_color);
  plot += fmt::format("  $rows using 1:3 with {} linewidth 2.8 linecolor '{}' title 'valid'", points, valid_color);
  if (with_baseline)
    plot += fmt::format(", \\\n  {} with lines dashtype (12,7) linewidth 1.6 linecolor '{}' title 'baseline {:.4g}'",
                        baseline, baseline_color, baseline);
  return draw_picture(svg, out, plot);
}

}  // namespace reel
