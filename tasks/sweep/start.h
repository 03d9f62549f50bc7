// What a call of `sweep` means: its options, and the sweep that they define or that a folder has.
#pragma once
#include "tasks/app/options.h"
#include "tasks/sweep/definition.h"
#include "tasks/sweep/engines.h"

namespace reel {

struct SweepOptions {
  std::vector<std::string> names;
  std::string grid, out, metric = "valid_loss", best = "auto";
  std::int64_t sample = 0, seeds = 1, threads = 1, halving = 0, rungs = 2, worker = 0;
  std::uint64_t sample_seed = 1;
  double stop_below = 0, hours = 0;
  bool gather = false, dry_run = false;
  EngineOptions engine;
};

void add_options(Options& options, SweepOptions& variables);

/// The sweep of the folder that the call names, or the one that it defines: new in --out, or what is there, extended.
/// All new combinations are checked by the task before anything is written. Throws Usage if the options do not fit.
Sweep open_or_define(SweepOptions& variables, const Options& options, const std::vector<std::string>& task_options);

/// A line for each combination: its options and updates.
std::string listing(const Sweep& sweep);
/// The first script that Slurm would get.
std::string script_of_all(const Sweep& sweep, const EngineOptions& engine);

}  // namespace reel
