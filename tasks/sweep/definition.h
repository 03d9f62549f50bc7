// What a sweep is: a task with fixed options, the combinations it tries, and seeds. It is kept in FOLDER/sweep.json, so
// that a second call, and workers on other machines, go on with the same runs.
#pragma once
#include <functional>

#include "tasks/sweep/grid.h"

namespace reel {

/// A combination of values, and what the task says of it.
struct Combination {
  Point point;
  std::int64_t updates = 0, validation = 1;  // of a whole run; from one validation to the next
};

struct SweepRun {
  std::size_t at = 0;  // of the combination
  std::int64_t seed = 1;
  std::string name;  // of its folder below FOLDER/runs: "cell=lstm,lr=1e-2,s1"
};

struct Sweep {
  std::string folder;              // absolute
  std::string task;                // the program
  std::vector<std::string> fixed;  // options of all runs
  std::string where;               // folder that relative paths in the options start from
  double stop_below = 0;
  std::int64_t halving = 0, rungs = 2;
  bool has_epochs = false;  // with halving: the task has --epochs, beside which it refuses --steps
  // what a later call may change
  std::string metric = "valid_loss", best = "auto";
  std::int64_t threads = 1;
  std::string engine;  // as JSON: how the last call ran it
  std::vector<Combination> combinations = {};
  std::vector<SweepRun> runs = {};  // run N of a job is runs[N - 1]; those of later calls are added behind

  std::string folder_of(const SweepRun& run) const { return folder + "/runs/" + run.name; }
  const Combination& of(const SweepRun& run) const { return combinations[run.at]; }
  /// Updates of a run at each rung of the halving, the whole last; each is a multiple of the interval of validations,
  /// so that a run that is resumed from rung to rung is the one that would have gone through.
  std::vector<std::int64_t> rungs_of(const SweepRun& run) const;
  /// The options of a run up to so many updates, without --out.
  std::vector<std::string> options_of(const SweepRun& run, std::int64_t updates) const;
  /// True if a larger metric is better.
  bool higher_is_better() const;
};

/// True if the folder has a sweep.json.
bool holds_sweep(const std::string& folder);
/// Reads FOLDER/sweep.json; throws Error if it is missing or damaged.
Sweep read_sweep(const std::string& folder);
void write_sweep(const Sweep& sweep);

/// Gives a new sweep its runs: these combinations, each with seeds 1 to `seeds`. Throws Usage if there are too many.
void add_runs(Sweep& sweep, const std::vector<Point>& points, std::int64_t seeds);
/// What is in the folder, with what the wanted sweep has more. Throws Usage that says how they differ, if that is not
/// all.
Sweep extended(const Sweep& stored, const Sweep& wanted);
/// Asks the task about combinations that are new, `jobs` at a time: fills in their updates. Throws Usage that names the
/// combination that the task refuses. `step` is called before each with how many are left, and returns true to stop.
/// Returns the task's notes of options without effect, each once and with the first combination that has it.
std::vector<std::string> check_combinations(Sweep& sweep, std::size_t jobs,
                                            const std::function<bool(std::size_t)>& step);

}  // namespace reel
