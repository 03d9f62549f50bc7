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
};

/// Rows of a group's seeds, step by step.
struct SeedRows {
  std::vector<RunFolder::Row> mean, low, high;
};

struct Group {
  std::string name;
  std::vector<std::string> values;   // of the options that differ
  std::vector<const ReadRun*> runs;  // at least one
  SeedRows rows;

  std::vector<double> numbers(const std::string& metric) const;  // of the runs that have it
};

struct Groups {
  std::vector<std::string> differing;  // options of which there are several values
  std::vector<Group> groups;           // the best first
};

/// The number of each metric that a run has come to: its last validation, its best one, its test.
std::map<std::string, double> numbers_of(const RunData& data);

Groups group(const std::vector<ReadRun>& runs, const Comparison& comparison);

/// Mean, least and greatest of each number at the steps that all seeds have.
SeedRows over_seeds(const std::vector<const ReadRun*>& runs);

}  // namespace reel::page
