#include "tasks/app/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/core/error.h"
#include "tasks/app/axes.h"
#include "tasks/app/gnuplot.h"

namespace reel {

namespace {

constexpr std::array colors{"#1f5f9e", "#d9822b", "#2e8b57", "#8e44ad", "#c2185b",
                            "#00838f", "#7f6000", "#5d6d7e", "#b03a2e", "#6b8e23"};
// of the first ten curves, of the next ten, ...: short enough for the sample in the legend
constexpr std::array dashes{"1", "(8,5)", "(2,4)", "(8,4,2,4)"};
constexpr const char* baseline_color = "#c0392b";

struct Point {
  double at, x, y;  // curves of one name are averaged where `at` is the same
};

/// The range of values at x.
struct Band {
  double x, low, high;
};

/// What one name has in the picture: its curves, or their mean and a band.
struct Group {
  std::string name;
  std::vector<std::vector<Point>> lines = {};
  std::vector<Band> band = {};
};

/// Replaces several curves by their mean and range, where all have a point, if there are two such places or more.
void average(Group& group) {
  if (group.lines.size() < 2) return;
  std::map<double, std::vector<Point>> points;
  for (const auto& line : group.lines)
    for (const Point& p : line) points[p.at].push_back(p);
  std::vector<Point> mean;
  std::vector<Band> band;
  for (const auto& [at, all] : points) {
    if (all.size() < group.lines.size()) continue;
    Point sum{at, 0, 0};
    for (const Point& p : all) sum.x += p.x, sum.y += p.y;
    const double count = static_cast<double>(all.size());
    mean.push_back({at, sum.x / count, sum.y / count});
    const auto [low, high] = std::ranges::minmax_element(all, {}, &Point::y);
    band.push_back({mean.back().x, low->y, high->y});
  }
  if (mean.size() < 2) return;
  group.name = fmt::format("{} ({} runs)", group.name, group.lines.size());
  group.lines = {mean};
  group.band = band;
}

/// "lstm, lr 0.1, clip-norm 1" as "lstm, 0.1, 1".
std::string without_options(const std::string& name) {
  std::string out;
  for (std::size_t at = 0, end = 0; at < name.size(); at = end + 2) {
    end = std::min(name.find(", ", at), name.size());
    const std::string part = name.substr(at, end - at);
    const std::size_t space = part.find(' ');
    out += (out.empty() ? "" : ", ") + (space == std::string::npos ? part : part.substr(space + 1));
  }
  return out;
}

/// Names that the legend has room for. If that makes two equal, the names of options go.
std::vector<std::string> legend_of(const std::vector<Group>& groups, std::size_t most) {
  std::vector<std::string> names;
  for (const Group& group : groups) names.push_back(shortened(group.name, most));
  if (std::set(names.begin(), names.end()).size() == names.size()) return names;
  for (std::size_t g = 0; g < groups.size(); ++g) names[g] = shortened(without_options(groups[g].name), most);
  return names;
}

std::vector<Point> points_of(const Curve& curve) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    if (const auto [x, y] = curve.points[i]; std::isfinite(x) && std::isfinite(y))
      points.push_back({curve.at.empty() ? x : curve.at[i], x, y});
  return points;
}

std::vector<Group> groups_of(const std::vector<Curve>& curves) {
  const std::vector<bool> out = left_out(curves);
  std::vector<Group> groups;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    std::vector<Point> points = points_of(curve);
    if (points.empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == curve.name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {curve.name});
    if (!out[i]) group->lines.push_back(std::move(points));
  }
  for (Group& group : groups) average(group);
  return groups;
}

}  // namespace

std::vector<bool> left_out(const std::vector<Curve>& curves) {
  std::set<std::string> counting;
  for (const Curve& curve : curves)
    if (curve.counts && !points_of(curve).empty()) counting.insert(curve.name);
  std::vector<bool> out;
  for (const Curve& curve : curves) out.push_back(!curve.counts && counting.contains(curve.name));
  return out;
}

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

std::string metric_words(const std::string& metric) {
  static const std::map<std::string, std::string> words{{"valid_loss", "validation loss"},
                                                        {"train_loss", "training loss"},
                                                        {"accuracy", "validation accuracy"},
                                                        {"grad_norm", "norm of the gradient"},
                                                        {"test.bpc", "bits per character, test set"},
                                                        {"test.nll", "negative log-likelihood, test set"},
                                                        {"epoch_seconds", "time per epoch"}};
  if (const auto known = words.find(metric); known != words.end()) return known->second;
  std::string text = metric;
  std::replace(text.begin(), text.end(), '_', ' ');
  std::replace(text.begin(), text.end(), '.', ' ');
  return text;
}

std::optional<std::string> draw_curves(const std::string& svg, const CurvesPicture& picture,
                                       const PictureStyle& style) {
  Range range;
  const bool with_baseline = picture.baseline && *picture.baseline > 0;
  if (with_baseline) range.take(*picture.baseline);
  double first = INFINITY, last = 0;
  std::string out, bands, lines, ends;                      // drawn in this order
  std::size_t widest = with_baseline ? 15 : 0, blocks = 0;  // "baseline 0.1667"
  const std::vector<Group> groups = groups_of(picture.curves);
  if (groups.empty()) return fmt::format("no picture {}: there is nothing to draw", svg);
  for (const Group& group : groups) widest = std::max(widest, letters_of(group.name));
  const Fit room = fit(style, groups.size() + (with_baseline ? 1 : 0), widest);
  const std::vector<std::string> legend = legend_of(groups, room.name_letters);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const std::string color = fmt::format("linecolor '{}'", colors[g % colors.size()]);
    if (!group.band.empty()) {
      out += fmt::format("$b{} << END\n", g);
      for (const Band& b : group.band) {
        out += fmt::format("{} {} {}\n", b.x, b.low, b.high);
        range.take(b.low);
        range.take(b.high);
      }
      out += "END\n";
      bands += fmt::format("$b{} using 1:2:3 with filledcurves fillstyle transparent solid 0.18 noborder {} notitle, ",
                           g, color);
    }
    for (const auto& line : group.lines) {
      out += fmt::format("$c{} << END\n", blocks);
      for (const auto& [at, x, y] : line) {
        out += fmt::format("{} {}\n", x, y);
        range.take(y);
        first = std::min(first, x);
        last = std::max(last, x);
      }
      out += "END\n";
      const char* marks = line.size() == 1    ? "points pointtype 7 pointsize 0.9"
                          : line.size() <= 40 ? "linespoints pointtype 7 pointsize 0.45 linewidth 2.2"
                                              : "lines linewidth 2.2";
      lines += fmt::format("$c{} using 1:2 with {} {} dashtype {} {}, ", blocks++, marks, color,
                           dashes[g / colors.size() % dashes.size()],
                           &line == group.lines.data() ? "title " + gnuplot_text(legend[g]) : "notitle");
      // a dot where a run ends: others may go on
      ends += fmt::format("$c{} every ::{} using 1:2 with points pointtype 7 pointsize 0.65 {} notitle, ", blocks - 1,
                          line.size() - 1, color);
    }
  }
  std::string plot = "plot " + bands + lines + ends;
  if (with_baseline)
    plot += fmt::format("{} with lines dashtype (12,7) linewidth 1.6 linecolor '{}' title 'baseline {:.4g}'",
                        *picture.baseline, baseline_color, *picture.baseline);
  else
    plot.resize(plot.size() - 2);
  out += (picture.shares ? y_axis_of_shares()
                         : y_axis(range, picture.logarithmic.value_or(range.wide()), room.text_lines)) +
         x_axis(first, last > 0 ? last : 1) + frame(picture.title, picture.x_label, picture.y_label, room);
  return draw_grown(svg, {picture.title, out, plot}, style, room);
}

std::optional<std::string> draw_bars(const std::string& svg, const std::string& title, const std::string& y_label,
                                     const std::vector<Bar>& bars, bool may_be_logarithmic) {
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
  if (range.low < 0) range.take(0);  // where bars start
  if (!reported && !measured) return fmt::format("no picture {}: there is nothing to draw", svg);
  data += "END\n";
  std::size_t longest = 0;
  for (const Bar& b : bars) longest = std::max(longest, b.name.size());
  const bool steep = bars.size() * longest > 90;
  Drawing drawing{title, "", "", std::max(900, 40 * static_cast<int>(bars.size()))};
  std::string out =
      data + y_axis(range, may_be_logarithmic && range.wide()) + frame(title, "", y_label, fit({}, 2, 8, drawing));
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
  drawing.settings = out;
  drawing.plot = plot;
  return draw_picture(svg, drawing);
}

}  // namespace reel
