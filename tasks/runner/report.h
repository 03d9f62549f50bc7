// The output of `reproduce`: a row for each preset, as text while it runs, and as Markdown, JSON and figures at the
// end.
#pragma once
#include "tasks/runner/preset_run.h"

namespace reel {

/// A preset and its runs, one per seed.
struct ReportRow {
  Preset preset;
  std::vector<PresetRun> runs;
  std::vector<double> measured() const;  // of the finished runs
  double mean() const;                   // NaN if no run is finished
  double spread() const;                 // the standard deviation over seeds; NaN for fewer than two
};

struct Report {
  PresetTable table;
  double budget = 1;
  std::int64_t seeds = 1;
  std::string device;
  std::vector<ReportRow> rows;
};

/// Head and rows of the table on the terminal; `width` is that of the first column.
std::string report_head(const Report& report, std::size_t width);
std::string report_line(const ReportRow& row, std::size_t width);

/// The base of its file names: FOLDER/TABLE, to which .md and the like are added.
std::string report_base(const Report& report, const std::string& folder);
/// Writes FOLDER/TABLE.md, .json and the figures. Throws Error if one of them cannot be written, after writing the
/// others.
void write_report(const Report& report, const std::string& folder);

/// Writes FOLDER/TABLE.html, the runs on a page for a browser; false if there are none with curves. Throws Error if it
/// cannot be written.
bool write_report_page(const Report& report, const std::string& folder);

/// The figures of a report, and what went wrong.
struct ReportFigures {
  std::vector<std::string> names;      // next to TABLE.md
  std::vector<std::string> problems;   // one line for each that could not be drawn
  std::vector<std::string> unwritten;  // one line for each that could not be written
};
/// Draws them as FOLDER/TABLE*.svg and .png.
ReportFigures draw_report(const Report& report, const std::string& folder);

}  // namespace reel
