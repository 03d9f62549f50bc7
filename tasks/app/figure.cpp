#include "tasks/app/figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tasks/app/axes.h"
#include "tasks/app/curves.h"
#include "tasks/app/gnuplot.h"

namespace reel {

namespace {
constexpr const char* train_color = "#8fb8de";
constexpr const char* valid_color = "#1f5f9e";
constexpr const char* baseline_color = "#c0392b";
}  // namespace

std::optional<std::string> draw_curve(const std::string& svg, const std::string& title,
                                      const std::vector<RunFolder::Row>& rows, double baseline,
                                      const PictureStyle& style) {
  if (rows.empty()) return fmt::format("no picture {}: there is no validation yet", svg);
  const bool with_baseline = std::isfinite(baseline) && baseline > 0;
  Range range;
  if (with_baseline) range.take(baseline);
  double last = 1, first = static_cast<double>(rows.front().examples);
  std::string out = "$rows << END\n";
  for (const RunFolder::Row& row : rows) {
    out += fmt::format("{} {} {}\n", row.examples, plotted(row.train_loss), plotted(row.valid_loss));
    range.take(row.train_loss);
    range.take(row.valid_loss);
    last = std::max(last, static_cast<double>(row.examples));
  }
  const Fit room = fit(style, with_baseline ? 3 : 2, std::string("baseline 0.1667").size());
  out += "END\n" + y_axis(range, range.wide(), room.text_lines) + x_axis(first, last) +
         frame(narrow(style) ? "" : title, examples_words, "loss", room);

  const char* points = rows.size() <= 40 ? "linespoints pointtype 7 pointsize 0.55" : "lines";
  const char* train = rows.size() == 1 ? "points pointtype 7 pointsize 0.8" : "lines linewidth 1.3";
  std::string plot =
      fmt::format("plot $rows using 1:2 with {} linecolor '{}' title 'training', \\\n", train, train_color);
  plot += fmt::format("  $rows using 1:3 with {} linewidth 2.8 linecolor '{}' title 'validation'", points, valid_color);
  if (with_baseline)
    plot += fmt::format(", \\\n  {} with lines dashtype (12,7) linewidth 1.6 linecolor '{}' title 'baseline {:.4g}'",
                        baseline, baseline_color, baseline);
  return draw_grown(svg, {title, out, plot}, style, room);
}

}  // namespace reel
