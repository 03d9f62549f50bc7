// Runs of a comparison in groups, with what tells these apart and the curves of each.
#pragma once
#include <map>

#include "tasks/app/statistics.h"
#include "tasks/page/compare.h"
#include "tasks/page/run_data.h"

namespace reel::page {

struct ReadRun {
  const ComparedRun* run;
  RunData data;
  std::string seed;
  std::map<std::string, double> numbers;  // by metric; what the run does not have is missing

  bool diverged() const { return data.record.contains("diverged_at_step"); }
};

/// Rows of a group's seeds, step by step.
struct SeedRows {
  std::vector<RunFolder::Row> mean, low, high;
};

struct Group {
  std::string name;
  std::vector<std::string> values;      // of the options that differ
  std::vector<const ReadRun*> runs;     // at least one
  std::vector<const ReadRun*> counted;  // those that did not diverge; if all did, all, for their curves
  SeedRows rows;                        // of the runs that count
  bool ranked = true;                   // it may be the best

  /// Of the runs that have it and did not diverge.
  std::vector<double> numbers(const std::string& metric) const;
  /// The fewest and the most updates of the runs that count and have begun.
  std::pair<std::int64_t, std::int64_t> updates() const;
};

struct Groups {
  std::vector<std::string> differing;  // options of which there are several values
  std::vector<Group> groups;           // the best first
  std::vector<std::string> repeated;   // a line for each run that is left out, as another one is the same
};

/// The number of each metric that a run has come to: its last validation, its best one, its test; and `metric`, if it
/// is another number of run.json.
std::map<std::string, double> numbers_of(const RunData& data, const std::string& metric = "");

/// Of two runs with the same options and seed the one with more updates counts. Groups in which runs diverged, or were
/// stopped at different updates, come behind the others.
Groups group(const std::vector<ReadRun>& runs, const Comparison& comparison);

/// Mean, least and greatest of each number at the steps that all seeds have.
SeedRows over_seeds(const std::vector<const ReadRun*>& runs);

}  // namespace reel::page
