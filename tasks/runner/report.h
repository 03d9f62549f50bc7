// The output of `reproduce`: a row for each preset, as text while it runs, and as Markdown, JSON and figures at the
// end.
#pragma once
#include "tasks/runner/preset_run.h"

namespace reel {

/// A preset and its runs, one per seed.
/// The paper of a table: "srnn" of "srnn/fig2".
inline std::string paper_of(const std::string& table) { return table.substr(0, table.find('/')); }

struct ReportRow {
  Preset preset;
  std::vector<PresetRun> runs;
  std::vector<double> measured(std::size_t measure = 0) const;  // of the finished runs that have it
  double mean(std::size_t measure = 0) const;    // NaN if no run is finished; infinite if one never got there
  double spread(std::size_t measure = 0) const;  // the standard deviation over seeds; NaN for fewer than two
};

struct Report {
  PresetTable table;
  double budget = 1;
  std::int64_t seeds = 1;
  std::string device;
  std::vector<ReportRow> rows;
};

/// Adds the rows of [SECTION.mean]: for each model the mean over all cases of the whole table, or over nine tenths of
/// them at least; then what is reported is the mean over the same cases.
void add_means(Report& report, const PresetTable& whole);

/// The mean of a measure and its deviation, for a loss its share of the baseline, and how many of the runs diverged;
/// "-" if there is none of these.
std::string measured_text(const ReportRow& row, std::size_t measure);
/// The count of parameters, "(exact)" or "(NOT n)"; "-" if it is not known.
std::string count_text(const ReportRow& row);
/// "20000", "1200 of 20000" of a run that ended early, or "1200 to 1500 of 20000" of several.
std::string updates_text(const ReportRow& row);
/// A text as a cell of a Markdown table.
std::string markdown_cell(std::string text);
/// What is measured, with its unit: "valid_loss, test.accuracy [%]".
std::string quantity(const Report& report);
/// Why some runs of a row have no number, in one line; empty if all have one, or diverged as expected.
std::string problems_of(const ReportRow& row);

/// Head and rows of the table on the terminal; `width` is that of the first column.
std::string report_head(const Report& report, std::size_t width);
/// `ended`: no more rows get runs; until then the verdict is "open" where one is compared with a row that has none yet.
std::string report_line(const Report& report, const ReportRow& row, std::size_t width, bool ended = true);
/// What failed, one line each, and the score.
std::string report_verdicts(const Report& report);

/// The base of its file names: FOLDER/TABLE, to which .md and the like are added.
std::string report_base(const Report& report, const std::string& folder);
/// Writes FOLDER/TABLE.md, .json and the figures. Throws Error if one of them cannot be written, after writing the
/// others.
void write_report(const Report& report, const std::string& folder);

/// Whether there is a page of a report, and all of its runs are on it.
enum class ReportPage { none, complete, incomplete };
/// Writes FOLDER/TABLE.html, the runs on a page for a browser, if any has curves; a line names each run that cannot be
/// read. Throws Error if the page cannot be written.
ReportPage write_report_page(const Report& report, const std::string& folder);

/// The figures of a report, and what went wrong.
struct ReportFigures {
  std::vector<std::string> names;      // next to TABLE.md
  std::vector<std::string> problems;   // one line for each that could not be drawn
  std::vector<std::string> unwritten;  // one line for each that could not be written
};
/// Draws them as FOLDER/TABLE*.svg and .png; with a budget other than 1 as FOLDER/TABLE-budget-BUDGET*.
ReportFigures draw_report(const Report& report, const std::string& folder);

}  // namespace reel
