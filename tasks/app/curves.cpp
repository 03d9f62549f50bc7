#include "tasks/app/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "tasks/app/axes.h"
#include "tasks/app/gnuplot.h"

namespace reel {

namespace {

constexpr std::array colors{"#1f5f9e", "#d9822b", "#2e8b57", "#8e44ad", "#c2185b",
                            "#00838f", "#7f6000", "#5d6d7e", "#b03a2e", "#6b8e23"};
constexpr const char* baseline_color = "#c0392b";
constexpr std::size_t legend_letters = 104;  // in a line of the legend
constexpr std::size_t sample_letters = 9;    // the width of the line sample before a name

}  // namespace

const std::vector<std::string>& curve_metrics() {
  static const std::vector<std::string> names{"valid_loss", "train_loss", "accuracy", "grad_norm"};
  return names;
}

double metric_of(const RunFolder::Row& row, const std::string& metric) {
  if (metric == "train_loss") return row.train_loss;
  if (metric == "valid_loss") return row.valid_loss;
  if (metric == "accuracy") return row.accuracy;
  if (metric == "grad_norm") return row.grad_norm;
  throw Error("curve", fmt::format("there is no column {} in metrics.csv", metric));
}

std::optional<std::string> draw_curves(const std::string& svg, const CurvesPicture& picture) {
  Range range;
  if (picture.baseline) range.take(*picture.baseline);
  double last = 0;
  std::string out, plot, bands;  // bands are drawn first, below all curves
  std::vector<std::string> names;
  std::size_t widest = picture.baseline ? 15 : 0;  // "baseline 0.1667"
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    const Curve& curve = picture.curves[i];
    std::string points;
    std::size_t count = 0;
    for (const auto& [x, y] : curve.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      points += fmt::format("{} {}\n", x, y);
      range.take(y);
      last = std::max(last, x);
      ++count;
    }
    if (count == 0) continue;
    auto name = std::find(names.begin(), names.end(), curve.name);
    const bool first = name == names.end();
    if (first) name = names.insert(names.end(), curve.name), widest = std::max(widest, curve.name.size());
    const auto color = static_cast<std::size_t>(name - names.begin());
    out += fmt::format("$c{} << END\n{}END\n", i, points);
    if (i < picture.bands.size() && picture.bands[i].size() > 1) {
      out += fmt::format("$b{} << END\n", i);
      for (const Band& b : picture.bands[i]) {
        out += fmt::format("{} {} {}\n", b.x, b.low, b.high);
        range.take(b.low);
        range.take(b.high);
      }
      out += "END\n";
      bands += fmt::format(
          "{} $b{} using 1:2:3 with filledcurves fillstyle transparent solid 0.18 noborder linecolor "
          "'{}' notitle",
          bands.empty() ? "plot" : ", \\\n ", i, colors[color % colors.size()]);
    }
    const char* marks = count == 1    ? "points pointtype 7 pointsize 0.9"
                        : count <= 40 ? "linespoints pointtype 7 pointsize 0.45"
                                      : "lines";
    plot += fmt::format("{} $c{} using 1:2 with {}{} linecolor '{}' dashtype {} {}", plot.empty() ? "plot" : ", \\\n ",
                        i, marks, count == 1 ? "" : " linewidth 2.2", colors[color % colors.size()],
                        color < colors.size() ? 1 : 2, first ? "title " + gnuplot_text(curve.name) : "notitle");
  }
  if (names.empty()) return fmt::format("no picture {}: there is nothing to draw", svg);
  if (picture.baseline && *picture.baseline > 0)
    plot += fmt::format(", \\\n  {} with lines dashtype (12,7) linewidth 1.6 linecolor '{}' title 'baseline {:.4g}'",
                        *picture.baseline, baseline_color, *picture.baseline);
  if (!bands.empty()) plot = bands + ", \\\n " + plot.substr(std::string("plot").size());
  const std::size_t entries = names.size() + (picture.baseline ? 1 : 0),
                    columns = std::max<std::size_t>(1, legend_letters / (widest + sample_letters));
  out += y_axis(range, picture.logarithmic.value_or(range.wide())) + x_axis(last > 0 ? last : 1) +
         frame(picture.title, picture.x_label, picture.y_label, static_cast<int>((entries + columns - 1) / columns)) +
         fmt::format("set key maxcols {}\n", columns);
  return draw_picture(svg, out, plot);
}

std::optional<std::string> draw_bars(const std::string& svg, const std::string& title, const std::string& y_label,
                                     const std::vector<Bar>& bars) {
  Range range;
  std::string data = "$bars << END\n", ticks;
  bool reported = false, measured = false, spread = false;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& b = bars[i];
    range.take(b.reported);
    range.take(b.measured);
    reported = reported || std::isfinite(b.reported);
    measured = measured || std::isfinite(b.measured);
    spread = spread || b.spread > 0;
    data += fmt::format("{} {} {} {}\n", i, plotted(b.reported), plotted(b.measured), plotted(b.spread));
    ticks += fmt::format("{}{} {}", i ? ", " : "", gnuplot_tick(b.name), i);
  }
  if (!reported && !measured) return fmt::format("no picture {}: there is nothing to draw", svg);
  data += "END\n";
  std::size_t longest = 0;
  for (const Bar& b : bars) longest = std::max(longest, b.name.size());
  const bool steep = bars.size() * longest > 90;
  std::string out = data + y_axis(range, range.wide()) + frame(title, "", y_label);
  out += fmt::format("set xrange [-0.6:{}]\nset xtics ({}) {} noenhanced\nset boxwidth 0.36\nset style fill solid\n",
                     static_cast<double>(bars.size()) - 0.4, ticks, steep ? "rotate by -45 left" : "norotate center");
  if (steep) out += fmt::format("set bmargin {}\nset rmargin {}\n", 3 + longest / 2, 4 + longest / 2);
  std::string plot = "plot";
  if (reported) plot += " $bars using ($1-0.19):2 with boxes linecolor '#c9ced6' title 'reported'";
  if (measured)
    plot += fmt::format("{} $bars using ($1+0.19):3 with boxes linecolor '#1f5f9e' title 'measured'",
                        reported ? ", \\\n " : "");
  if (spread)
    plot += ", \\\n  $bars using ($1+0.19):3:4 with yerrorbars pointtype -1 linewidth 1.4 linecolor '#222222' notitle";
  return draw_picture(svg, out, plot, std::max(900, 40 * static_cast<int>(bars.size())));
}

}  // namespace reel
