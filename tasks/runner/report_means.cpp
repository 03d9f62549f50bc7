#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tasks/app/statistics.h"
#include "tasks/runner/report.h"

namespace reel {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double least_share = 0.9;  // of the cases

/// The runs of a mean: for each seed that all of these rows have, what the rows have on the average. A seed that
/// diverged in one of them has diverged in the mean.
std::vector<PresetRun> mean_runs(const std::vector<const ReportRow*>& rows) {
  std::vector<PresetRun> out;
  std::set<std::uint64_t> seeds;
  for (const ReportRow* row : rows)
    for (const PresetRun& run : row->runs) seeds.insert(run.seed);
  for (const std::uint64_t seed : seeds) {
    PresetRun mean;
    mean.seed = seed;
    mean.baseline = nan;
    mean.kept = true;
    std::vector<double> values;
    for (const ReportRow* row : rows)
      for (const PresetRun& run : row->runs)
        if (run.seed == seed && run.diverged) {
          mean.diverged = true;
          mean.problem = fmt::format("{} diverged", row->preset.label);
        } else if (run.seed == seed && run.done()) {
          values.push_back(run.measured.front());
          mean.seconds += run.seconds;
          mean.kept = mean.kept && run.kept;
          mean.threads = run.threads;
        }
    if (values.size() != rows.size() && !mean.diverged) continue;
    mean.measured = {reel::mean(values)};
    out.push_back(std::move(mean));
  }
  return out;
}

}  // namespace

void add_means(Report& report, const PresetTable& whole) {
  for (const Preset& of : report.table.means) {
    std::vector<const ReportRow*> rows;
    const auto is_case = [&](const Preset& p) { return p.model == of.model && p.in_case != of.in_case; };
    const auto cases = static_cast<std::size_t>(std::ranges::count_if(whole.presets, is_case));
    for (const ReportRow& row : report.rows)
      if (is_case(row.preset) && (!row.measured().empty() || std::ranges::any_of(row.runs, &PresetRun::diverged)))
        rows.push_back(&row);
    if (rows.empty() || static_cast<double>(rows.size()) < least_share * static_cast<double>(cases)) continue;
    ReportRow mean{of, mean_runs(rows)};
    if (mean.runs.empty()) continue;
    Measure& m = mean.preset.measures.front();
    if (rows.size() < cases) {
      std::vector<double> reported;
      for (const ReportRow* row : rows)
        if (row->preset.main().value) reported.push_back(*row->preset.main().value);
      mean.preset.notes.push_back(fmt::format("Over {} of {} cases; the paper's mean over all of them is {}.",
                                              rows.size(), cases, m.reported.empty() ? "not known" : m.reported));
      if (m.value && reported.size() == rows.size()) {
        m.value = reel::mean(reported);
        m.reported = significant(*m.value, 4);
      }
    }
    report.rows.push_back(std::move(mean));
  }
}

}  // namespace reel
