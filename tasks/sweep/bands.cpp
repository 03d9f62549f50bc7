#include "tasks/sweep/bands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tasks/app/curves.h"

namespace reel {

namespace {

constexpr std::size_t most_curves = 8;

/// "lstm, 0.01"; the task where nothing differs.
std::string name_of(const Sweep& sweep, const ResultRow& row) {
  std::vector<std::string> said;
  for (const std::string& value : row.values)
    if (!value.empty()) said.push_back(value);
  return said.empty() ? sweep.task : fmt::format("{}", fmt::join(said, ", "));
}

struct BandCurve {
  Curve mean;
  std::vector<Band> band;
};

/// The mean of all seeds against the number of examples, and the range of the seeds, where all have a value.
BandCurve curve_of(const Sweep& sweep, const ResultRow& row, const std::string& column) {
  std::map<std::int64_t, std::vector<double>> values;
  std::size_t seeds = 0;
  for (const SweepRun& run : sweep.runs) {
    if (run.at != row.at) continue;
    try {
      for (const RunFolder::Row& r : RunFolder::view(sweep.folder_of(run)).rows())
        if (const double y = metric_of(r, column); std::isfinite(y)) values[r.examples].push_back(y);
      ++seeds;
    } catch (const Error&) {  // it has not begun
    }
  }
  BandCurve curve{{name_of(sweep, row), {}}, {}};
  for (const auto& [x, all] : values) {
    if (all.size() < seeds) continue;
    double total = 0;
    for (const double y : all) total += y;
    curve.mean.points.emplace_back(static_cast<double>(x), total / static_cast<double>(all.size()));
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    if (seeds > 1) curve.band.push_back({static_cast<double>(x), *low, *high});
  }
  return curve;
}

}  // namespace

std::string draw_bands(const std::string& svg, const Sweep& sweep, const Results& results) {
  const bool accuracy = sweep.metric.find("accuracy") != std::string::npos;
  const auto& known = curve_metrics();
  const std::string column = std::find(known.begin(), known.end(), sweep.metric) != known.end() ? sweep.metric
                             : accuracy                                                         ? "accuracy"
                                                                                                : "valid_loss";
  CurvesPicture picture{
      fmt::format("{}: the best of {} combinations", sweep.task, results.rows.size()), "examples", column, {}};
  if (results.rows.size() <= most_curves) picture.title = sweep.task;
  if (accuracy) picture.logarithmic = false;
  for (const ResultRow& row : results.rows) {
    if (picture.curves.size() == most_curves) break;
    if (row.measured.empty()) continue;
    const BandCurve curve = curve_of(sweep, row, column);
    picture.curves.push_back(curve.mean);
    picture.bands.push_back(curve.band);
  }
  return draw_curves(svg, picture).value_or("");
}

}  // namespace reel
