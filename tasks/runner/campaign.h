// What `reproduce` is asked for, as reports with rows to run, and the runs themselves.
#pragma once
#include "tasks/app/interrupt.h"
#include "tasks/runner/report.h"

namespace reel {

/// A table, and the report of the rows that are asked for.
struct Chosen {
  PresetTable whole;
  Report report;  // its table is the part, under a name of its own
};

struct Choice {
  std::vector<std::string> names;  // of papers, tables, figures, presets
  bool all = false;
  std::string cells, cases;  // with commas between; empty: all
};

/// The tables that are named, each once and in the order of the presets. Throws Usage with near names.
std::vector<Chosen> choose(const std::vector<PresetTable>& tables, const Choice& choice);

struct CampaignOptions {
  PresetRunOptions run;  // of each run, but for the seed
  std::int64_t seeds = 1, jobs = 1;
  double hours = 0;     // the cheapest runs first, as many as fit; 0: all, in their order
  std::string results;  // folder of stored results, which say what runs took
};

/// How far a campaign came.
struct CampaignEnd {
  std::size_t runs = 0, left = 0;  // all, and those that there was no time for
  double next = 0;  // seconds that the cheapest of these takes, if the same command would not do it; or 0
};

/// Runs all rows with all seeds, some at a time. Calls `complete` with the number of a table and of a row in it when
/// all seeds of the row have ended, or when no more will.
CampaignEnd run_campaign(std::vector<Chosen>& chosen, const CampaignOptions& options, const Interrupt& interrupt,
                         const std::function<void(std::size_t, std::size_t)>& complete);

}  // namespace reel
