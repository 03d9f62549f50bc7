// What a sweep found: a row for each combination, in the terminal, as CSV and Markdown, and a picture.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tasks/sweep/state.h"

namespace reel {

/// A combination and what its runs with all seeds came to.
struct ResultRow {
  std::vector<std::string> values;           // of the options that differ
  std::size_t at = 0;                        // of the combination
  std::vector<double> measured = {};         // of the runs that have the metric
  std::string best_run = {};                 // the name of the run with the best one
  std::optional<std::int64_t> updates = {};  // done, the least of the runs measured
  std::int64_t reached = 0;  // up to which these are complete: those that stopped by their own rules have all
  double seconds = 0;        // the mean; NaN: unknown
  std::vector<std::pair<std::string, std::string>> problems = {};  // runs that failed, and why
  std::size_t missing = 0;                                         // runs that are not done yet

  double mean() const;             // NaN if nothing is measured
  double deviation() const;        // over seeds; NaN for fewer than two
  double best(bool higher) const;  // infinite if no run solved the task, with a metric of solved_at
  std::size_t never() const;       // how many did not
  bool complete() const;           // all runs are done, and none failed
};

struct Results {
  std::vector<std::string> differing;  // options of which there are several values
  std::vector<ResultRow> rows;         // the best first; with halving, after the updates
  Counts counts;
};

/// Of what the runs' folders say, and of failures that they could not take.
Results gather(const Sweep& sweep, const Untold& untold = {});
/// Throws Error with a near name if runs have ended, and none of them has the metric.
void require_metric(const Sweep& sweep);
/// The table as a user reads it, at most `most` rows, and a line for each run that failed.
std::string results_text(const Sweep& sweep, const Results& results, std::size_t most);
/// Writes FOLDER/results.csv, results.md, results.svg, results.png and report.html; returns why there is no picture, if
/// there is none. Throws Error if one cannot be written, after writing the others.
std::string write_results(const Sweep& sweep, const Results& results);
/// Writes FOLDER/report.html, the runs on a page for a browser. Throws Error if it cannot be written, or if a run
/// cannot be read, which the page then says.
void write_page(const Sweep& sweep, const Results& results);

}  // namespace reel
