// The figures of a report: curves or bars, one for each case where there are a few, or a map for each grid.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include "engine/error.h"
#include "tasks/harness/curves.h"
#include "tasks/harness/files.h"
#include "tasks/harness/heat_map.h"
#include "tasks/harness/report.h"
#include "tasks/harness/run_folder.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The rows of a figure, under the case that it shows; all under "" when they share one figure.
std::vector<std::pair<std::string, std::vector<const ReportRow*>>> groups(const Report& report) {
  constexpr std::size_t most = 6;  // figures; a bar chart of more cases shows all in one
  std::vector<std::pair<std::string, std::vector<const ReportRow*>>> out;
  for (const ReportRow& row : report.rows) {
    const auto same = [&](const auto& group) { return group.first == row.preset.in_case; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back({row.preset.in_case, {}});
    std::find_if(out.begin(), out.end(), same)->second.push_back(&row);
  }
  // cases of a single model are what is to be compared
  const bool lone = std::all_of(out.begin(), out.end(), [](const auto& group) { return group.second.size() == 1; });
  if (lone || (report.table.figure == "bars" && out.size() > most)) {
    std::vector<const ReportRow*> all;
    for (const ReportRow& row : report.rows) all.push_back(&row);
    return {{"", all}};
  }
  return out;
}

std::string short_name(const Preset& p, bool whole) { return whole || p.model.empty() ? p.label : p.model; }

std::optional<std::string> draw_group_curves(const std::string& svg, const std::string& title,
                                             const std::vector<const ReportRow*>& rows, bool whole) {
  CurvesPicture picture{title, "examples", "", {}};
  for (const ReportRow* row : rows) {
    const std::string& metric = row->preset.metric;
    const bool accuracy = metric.find("accuracy") != std::string::npos;
    picture.y_label = accuracy ? "accuracy" : "loss";
    if (accuracy) picture.logarithmic = false;
    for (const PresetRun& run : row->runs) {
      if (!fs::exists(run.folder + "/config.toml")) continue;
      Curve curve{short_name(row->preset, whole), {}};
      try {
        for (const RunFolder::Row& r : RunFolder::open(run.folder).rows())
          curve.points.emplace_back(r.examples, metric_of(r, accuracy ? "accuracy" : "valid_loss"));
      } catch (const Error&) {
        continue;  // it died before its first row
      }
      picture.curves.push_back(curve);
      if (!accuracy && run.baseline > 0) picture.baseline = run.baseline;
    }
  }
  return draw_curves(svg, picture);
}

std::optional<std::string> draw_group_bars(const std::string& svg, const std::string& title,
                                           const std::vector<const ReportRow*>& rows, bool whole) {
  std::vector<Bar> bars;
  for (const ReportRow* row : rows)
    bars.push_back({short_name(row->preset, whole), row->preset.value.value_or(nan), row->mean(), row->spread()});
  const Preset& p = rows.front()->preset;
  return draw_bars(svg, title, p.metric + (p.unit.empty() ? "" : fmt::format(" [{}]", p.unit)), bars);
}

/// The share of draws that came right, rows K, columns S, over all seeds.
std::optional<std::string> draw_map(const std::string& svg, const std::string& title, const ReportRow& row) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<double, double>> fields;  // (K, S) -> right, of
  for (const PresetRun& run : row.runs) {
    if (!run.done()) continue;
    std::istringstream in(read_file(run.folder + "/table.tsv"));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::istringstream numbers(line);
      std::int64_t K = 0, S = 0;
      double planes = 0, T = 0, right = 0, draws = 0;
      if (!(numbers >> K >> S >> planes >> T >> right >> draws)) continue;
      fields[{K, S}].first += right;
      fields[{K, S}].second += draws;
    }
  }
  if (fields.empty()) return fmt::format("no picture {}: there is nothing to draw", svg);
  std::vector<std::int64_t> Ks, Ss;
  for (const auto& [place, counts] : fields) {
    if (std::find(Ks.begin(), Ks.end(), place.first) == Ks.end()) Ks.push_back(place.first);
    if (std::find(Ss.begin(), Ss.end(), place.second) == Ss.end()) Ss.push_back(place.second);
  }
  std::sort(Ks.begin(), Ks.end());
  std::sort(Ss.begin(), Ss.end());
  HeatMap map{title, "S: symbols to remember", "K: different symbols", Ks.size(), Ss.size(), {}};
  map.low = 0;
  map.high = 1;
  for (const std::int64_t K : Ks) {
    for (const std::int64_t S : Ss) {
      const auto field = fields.find({K, S});
      const double share = field == fields.end() ? nan : field->second.first / field->second.second;
      map.values.push_back(share);
      map.texts.push_back(field == fields.end() ? "" : fmt::format("{:.0f} %", 100 * share));
    }
  }
  for (const std::int64_t K : Ks) map.row_names.push_back(fmt::format("{}", K));
  for (const std::int64_t S : Ss) map.column_names.push_back(fmt::format("{}", S));
  return draw_heat_map(svg, map);
}

}  // namespace

std::vector<std::string> draw_report(const Report& report, const std::string& folder,
                                     std::vector<std::string>& problems) {
  std::vector<std::string> figures;
  const fs::path base = fs::path(folder) / report.table.name;
  const auto took = [&](const std::string& svg, const std::optional<std::string>& problem) {
    if (problem)
      problems.push_back(*problem);
    else
      figures.push_back(fs::path(svg).filename());
  };
  if (report.table.figure == "map") {
    for (const ReportRow& row : report.rows) {
      const std::string svg = fmt::format("{}-{}.svg", base.string(), row.preset.label);
      if (!row.measured().empty())
        took(svg, draw_map(svg, fmt::format("{}: {}", report.table.title, row.preset.label), row));
    }
    return figures;
  }
  const auto all = groups(report);
  for (const auto& [name, rows] : all) {
    if (std::none_of(rows.begin(), rows.end(), [](const ReportRow* row) { return !row->measured().empty(); })) continue;
    const bool alone = name.empty();
    const std::string svg = fmt::format("{}{}{}.svg", base.string(), alone ? "" : "-", name);
    const std::string title = alone ? report.table.title : fmt::format("{}: {}", report.table.title, name);
    took(svg, report.table.figure == "bars" ? draw_group_bars(svg, title, rows, alone)
                                            : draw_group_curves(svg, title, rows, alone));
  }
  return figures;
}

}  // namespace reel
