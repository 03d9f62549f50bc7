// The figures of a report: curves or bars, one for each case if there are only a few; a map for each grid; or the
// pictures of the runs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "engine/core/error.h"
#include "tasks/app/curves.h"
#include "tasks/app/run_folder.h"
#include "tasks/app/success_map.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"
#include "tasks/runner/report.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The rows of each figure, under the case that it shows; all rows are under "" if they share one figure.
std::vector<std::pair<std::string, std::vector<const ReportRow*>>> groups(const Report& report) {
  constexpr std::size_t most = 6;  // figures; a bar chart of more cases shows all in one
  std::vector<std::pair<std::string, std::vector<const ReportRow*>>> out;
  for (const ReportRow& row : report.rows) {
    const auto same = [&](const auto& group) { return group.first == row.preset.in_case; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back({row.preset.in_case, {}});
    std::find_if(out.begin(), out.end(), same)->second.push_back(&row);
  }
  // with only one model, the cases are what to compare
  const bool lone = std::all_of(out.begin(), out.end(), [](const auto& group) { return group.second.size() == 1; });
  if (lone || (report.table.figure == "bars" && out.size() > most)) {
    std::vector<const ReportRow*> all;
    for (const ReportRow& row : report.rows) all.push_back(&row);
    return {{"", all}};
  }
  return out;
}

std::string short_name(const Preset& p, bool whole) { return whole || p.model.empty() ? p.label : p.model; }

/// Draws curves of the preset's metric, a loss or an accuracy, or of the gradient norm.
std::optional<std::string> draw_group_curves(const std::string& svg, const std::string& title,
                                             const std::vector<const ReportRow*>& rows, bool whole, bool norms) {
  CurvesPicture picture{title, examples_words, "", {}};
  std::set<double> baselines;  // 0: a run has none
  for (const ReportRow* row : rows) {
    const std::string& metric = row->preset.main().metric;
    const bool accuracy = !norms && metric.find("accuracy") != std::string::npos;
    const std::string column = norms ? "grad_norm" : accuracy ? "accuracy" : "valid_loss";
    picture.y_label = metric_words(column);
    picture.shares = accuracy;
    for (const PresetRun& run : row->runs) {
      if (run.curve.empty()) continue;
      Curve curve{short_name(row->preset, whole), {}};
      curve.counts = !run.diverged;
      for (const RunFolder::Row& r : run.curve) curve.points.emplace_back(r.examples, metric_of(r, column));
      picture.curves.push_back(curve);
      if (column == "valid_loss") baselines.insert(run.baseline > 0 ? run.baseline : 0);
    }
  }
  if (baselines.size() == 1 && *baselines.begin() > 0) picture.baseline = *baselines.begin();  // all have the same
  return draw_curves(svg, picture);
}

std::optional<std::string> draw_group_bars(const std::string& svg, const std::string& title,
                                           const std::vector<const ReportRow*>& rows, bool whole) {
  constexpr std::size_t most = 24;  // names; of more rows only those with a result, whose names can be read
  std::vector<Bar> bars;
  for (const ReportRow* row : rows) {
    if (rows.size() > most && row->measured().empty()) continue;
    bars.push_back({short_name(row->preset, whole), row->preset.main().value.value_or(nan),
                    std::isfinite(row->mean()) ? row->mean() : nan, row->spread()});
  }
  const Measure& m = rows.front()->preset.main();
  const bool loss = m.metric.find("loss") != std::string::npos;
  return draw_bars(svg, title, metric_words(m.metric) + (m.unit.empty() ? "" : fmt::format(" ({})", m.unit)), bars,
                   loss);
}

/// Draws how often copying with hand-written weights succeeds, over all seeds.
std::optional<std::string> draw_map(const std::string& svg, const std::string& title, const ReportRow& row) {
  SuccessMap map;
  for (const PresetRun& run : row.runs)
    if (run.done() && fs::exists(run.folder + "/table.tsv")) map.add(read_file(run.folder + "/table.tsv"));
  return map.draw(svg, title);
}

/// Copies a picture that a run drew, SVG, PNG and PDF, to BASE-FILE, or to BASE-sSEED-FILE if there are several runs,
/// in this call or earlier ones; returns the path of the SVG. A picture without a seed is of an only run, which was
/// seed 1.
fs::path copy_picture(const fs::path& svg, const std::string& base, const PresetRun& run, bool several) {
  std::error_code error;
  const auto path = [&](std::uint64_t seed) {
    return fs::path(fmt::format("{}-s{}-{}", base, seed, svg.filename().string()));
  };
  const fs::path alone = fmt::format("{}-{}", base, svg.filename().string());
  several = several || fs::exists(path(run.seed), error);
  const fs::path to = several ? path(run.seed) : alone;
  for (const char* end : {".svg", ".png", ".pdf"}) {
    const auto with = [&](fs::path name) { return name.replace_extension(end); };
    if (several && fs::exists(with(alone), error)) {
      if (!fs::exists(with(path(1)), error)) fs::rename(with(alone), with(path(1)), error);
      fs::remove(with(alone), error);
    }
    if (fs::exists(with(svg))) write_atomically(with(to), read_file(with(svg)));
  }
  return to;
}

/// Copies the pictures that the runs drew to BASE-PRESET-NAME; returns the names of the SVG files.
std::vector<std::string> copy_pictures(const std::string& base, const ReportRow& row) {
  std::vector<std::string> names;
  for (const PresetRun& run : row.runs) {
    if (!run.done()) continue;
    for (const fs::path& svg : entries_of(run.folder))
      if (svg.extension() == ".svg" && svg.stem() != "curve")
        names.push_back(copy_picture(svg, base + "-" + row.preset.label, run, row.runs.size() > 1).filename());
  }
  return names;
}

}  // namespace

ReportFigures draw_report(const Report& report, const std::string& folder) {
  ReportFigures figures;
  // those of a part of the updates are not the stored ones
  const std::string budget = report.budget == 1 ? "" : fmt::format("-budget-{:g}", report.budget);
  const std::string base = report_base(report, folder) + budget;
  const auto unless_it_fails = [&](const auto& work) {
    try {
      work();
    } catch (const std::exception& e) {
      figures.unwritten.emplace_back(e.what());
    }
  };
  const auto took = [&](const std::string& svg, const auto& draw) {
    unless_it_fails([&] {
      if (const std::optional<std::string> problem = draw())
        figures.problems.push_back(*problem);
      else
        figures.names.push_back(fs::path(svg).filename());
    });
  };
  if (report.table.figure == "map") {
    for (const ReportRow& row : report.rows) {
      const std::string svg = fmt::format("{}-{}.svg", base, row.preset.label);
      const auto there = [](const PresetRun& run) { return fs::exists(run.folder + "/table.tsv"); };
      if (!row.measured().empty() && std::any_of(row.runs.begin(), row.runs.end(), there))
        took(svg, [&] { return draw_map(svg, fmt::format("{}: {}", report.table.title, row.preset.label), row); });
    }
    return figures;
  }
  if (report.table.figure == "pictures") {
    for (const ReportRow& row : report.rows)
      unless_it_fails([&] {
        for (const std::string& name : copy_pictures(base, row)) figures.names.push_back(name);
      });
    return figures;
  }
  for (const auto& [name, rows] : groups(report)) {
    if (std::none_of(rows.begin(), rows.end(), [](const ReportRow* row) { return !row->measured().empty(); })) continue;
    const bool alone = name.empty();
    const std::string title = alone ? report.table.title : fmt::format("{}: {}", report.table.title, name);
    const auto file = [&](const char* kind) { return fmt::format("{}{}{}{}.svg", base, kind, alone ? "" : "-", name); };
    if (report.table.figure == "bars")
      took(file(""), [&, &rows = rows] { return draw_group_bars(file(""), title, rows, alone); });
    if (report.table.figure == "bars" && !report.table.curves) continue;
    if (std::ranges::all_of(rows, [](const ReportRow* row) { return row->preset.task.empty(); })) continue;  // of means
    const std::string svg = file(report.table.figure == "bars" ? "-curves" : "");
    took(svg,
         [&, &rows = rows] { return draw_group_curves(svg, title, rows, alone, report.table.figure == "grad_norm"); });
  }
  return figures;
}

}  // namespace reel
