// What runs will cost, measured by a few updates of each combination.
#pragma once
#include <functional>

#include "tasks/sweep/definition.h"

namespace reel {

/// Seconds that a run of each combination takes: time of an update and of a validation, from eight updates, times how
/// many there are. Of combinations without a run in `order`, and of those whose updates fail, it is 0. What was
/// measured before, with as many threads, is kept in FOLDER/costs.json. `step` is called while a program runs, with how
/// many combinations are left, and returns true to stop; then it throws Error.
std::vector<double> run_costs(const Sweep& sweep, const std::vector<std::size_t>& order,
                              const std::function<bool(std::size_t)>& step);

/// What is left of a run that costs `whole`, by the updates in its metrics.csv.
double cost_left(const Sweep& sweep, const SweepRun& run, double whole);

/// Runs in the order in which they are done, the cheapest first.
struct Schedule {
  std::vector<std::size_t> runs;
  double seconds = 0;  // until the last one ends
};
/// The runs of `order` that `jobs` workers, each with one run at a time, end within `seconds`; costs[i] is of order[i].
Schedule affordable(const std::vector<std::size_t>& order, const std::vector<double>& costs, std::size_t jobs,
                    double seconds);

}  // namespace reel
