#include "tasks/sweep/bands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tasks/app/curves.h"
#include "tasks/page/compare.h"

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

/// Adds a curve of each seed that has begun, all of one name; those without a number do not count beside others.
void add_curves(CurvesPicture& picture, const Sweep& sweep, const ResultRow& row, const std::string& column,
                std::vector<std::string>& left_out) {
  for (const SweepRun& run : sweep.runs) {
    const std::string folder = sweep.folder_of(run);
    if (run.at != row.at || !page::holds_run(folder)) continue;
    Curve curve{name_of(sweep, row), {}};
    curve.counts = std::ranges::none_of(row.problems, [&](const auto& problem) { return problem.first == run.name; });
    try {
      for (const RunFolder::Row& r : RunFolder::view(folder).rows())
        curve.points.emplace_back(r.examples, metric_of(r, column));
    } catch (const Error& e) {
      left_out.push_back(fmt::format("{} is not in the figure: {}", run.name, e.what()));
    }
    picture.curves.push_back(curve);
  }
}

}  // namespace

std::string draw_bands(const std::string& svg, const Sweep& sweep, const Results& results,
                       std::vector<std::string>& left_out) {
  const bool accuracy = page::quantity_of(sweep.metric).find("accuracy") != std::string::npos;
  const auto& known = curve_metrics();
  const std::string column = std::find(known.begin(), known.end(), sweep.metric) != known.end() ? sweep.metric
                             : accuracy                                                         ? "accuracy"
                                                                                                : "valid_loss";
  CurvesPicture picture{fmt::format("{}: the best of {} combinations", sweep.task, results.rows.size()),
                        examples_words,
                        metric_words(column),
                        {}};
  if (results.rows.size() <= most_curves) picture.title = sweep.task;
  picture.shares = column == "accuracy";
  std::size_t drawn = 0;
  for (const ResultRow& row : results.rows)
    if (!row.measured.empty() && drawn++ < most_curves) add_curves(picture, sweep, row, column, left_out);
  return draw_curves(svg, picture).value_or("");
}

}  // namespace reel
