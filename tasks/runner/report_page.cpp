// The page of a report: its runs compared, beside what the paper reports.
#include <fmt/core.h>

#include <cmath>
#include <filesystem>

#include "tasks/app/statistics.h"
#include "tasks/io/output.h"
#include "tasks/page/compare.h"
#include "tasks/runner/report.h"
#include "tasks/runner/verdict.h"

namespace reel {

ReportPage write_report_page(const Report& report, const std::string& folder) {
  page::Comparison page{.title = report.table.title,
                        .columns = {"reported", "measured", "verdict"},
                        .facts = {fmt::format("{}, {}: {}. Budget {:g} of the paper's updates.", report.table.paper,
                                              report.table.where, report.table.name, report.budget)}};
  for (const std::string& note : report.table.notes) page.facts.push_back(note);
  for (const ReportRow& row : report.rows) {
    const Measure& m = row.preset.main();
    const std::string unit = m.unit.empty() ? "" : " " + m.unit, verdict = text_of(judge(report, row, 0).verdict);
    const std::string measured = std::isfinite(row.mean()) ? with_deviation(row.mean(), row.spread()) : "";
    for (const PresetRun& run : row.runs) {
      std::error_code error;
      if (!std::filesystem::exists(run.folder + "/config.toml", error) && !error) continue;
      page.metric = m.metric;
      page.runs.push_back(
          {run.folder,
           std::filesystem::path(run.folder).filename(),
           row.preset.label,
           {m.reported.empty() ? "" : m.reported + unit, measured.empty() ? "" : measured + unit, verdict}});
    }
  }
  if (page.runs.empty()) return ReportPage::none;  // solutions by hand, or nothing was begun
  page.higher_is_better = page::higher_is_better(page.metric);
  const std::string path = report_base(report, folder) + ".html";
  const std::vector<std::string> problems = page::write_comparison(page, path).unreadable;
  for (const std::string& problem : problems)
    print_err("reproduce: left out of {}: {}\n", one_line(path), one_line(problem));
  return problems.empty() ? ReportPage::complete : ReportPage::incomplete;
}

}  // namespace reel
