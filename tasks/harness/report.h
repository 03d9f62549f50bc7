// What `reproduce` has to say: a row for each preset, as text while it goes, as Markdown, JSON and figures at the end.
#pragma once
#include "tasks/harness/preset_run.h"

namespace reel {

/// A preset and its runs, a seed each.
struct ReportRow {
  Preset preset;
  std::vector<PresetRun> runs;
  std::vector<double> measured() const;  // of the runs that are done
  double mean() const;                   // NaN when none is done
  double spread() const;                 // the standard deviation over seeds; NaN for fewer than two
};

struct Report {
  PresetTable table;
  double budget = 1;
  std::int64_t seeds = 1;
  std::string device;
  std::vector<ReportRow> rows;
};

/// Head and rows of the table on the terminal; `width` of its first column.
std::string report_head(const Report& report, std::size_t width);
std::string report_line(const ReportRow& row, std::size_t width);

/// Writes FOLDER/TABLE.md and .json.
void write_report(const Report& report, const std::string& folder);

/// Draws the figures of the table as FOLDER/TABLE*.svg and .png; returns their names (below FOLDER's TABLE.md), and
/// puts into `problems` a line for each that could not be drawn.
std::vector<std::string> draw_report(const Report& report, const std::string& folder,
                                     std::vector<std::string>& problems);

}  // namespace reel
