// The results that are kept: for each table a file of numbers and one of curves, as CSV, to which each call adds. They
// need nothing else to be judged and drawn again.
#pragma once
#include "tasks/runner/report.h"

namespace reel {

/// The files of a table, "srnn/fig2", in a folder of results.
std::string numbers_file(const std::string& folder, const std::string& table);
std::string curves_file(const std::string& folder, const std::string& table);

/// A table's rows with the runs that are stored: one for each preset, then the means. Runs of a preset whose options
/// have changed since are left out; their names are added to `stale`. Throws Error with file and line if a file is
/// damaged.
Report stored_report(const PresetTable& table, const std::string& folder, std::vector<std::string>& stale);

/// Where the numbers of a stored run contradict each other, a line each: its lowest validation loss, where it solved
/// its task, its updates and its curve.
std::vector<std::string> contradictions(const Report& report);

/// The files of numbers in the folder whose table the presets do not have.
std::vector<std::string> foreign_numbers(const std::vector<PresetTable>& tables, const std::string& folder);

/// True if numbers are stored in the folder, of one of these tables or of another one.
bool has_numbers(const std::vector<PresetTable>& tables, const std::string& folder);

/// Stores the runs of these rows that are finished, or diverged, beside those that are there already; a run of the same
/// preset and seed is replaced. Throws Error if a file cannot be read or written.
void store(const PresetTable& table, const std::vector<ReportRow>& rows, const std::string& folder);

}  // namespace reel
