// What runs will cost, measured by a few updates of each combination.
#pragma once
#include <functional>

#include "tasks/sweep/definition.h"

namespace reel {

/// Seconds that a run of each combination takes: time of an update and of a validation, from eight updates, times how
/// many there are. What was measured before is kept in FOLDER/costs.json. `step` is called while a program runs, with
/// how many combinations are left, and returns true to stop. Throws Error with the program's words if one fails.
std::vector<double> run_costs(const Sweep& sweep, const std::function<bool(std::size_t)>& step);

/// The runs of `order`, the cheapest first, whose sum of costs is at most `seconds`.
std::vector<std::size_t> affordable(const Sweep& sweep, std::vector<std::size_t> order,
                                    const std::vector<double>& costs, double seconds);

}  // namespace reel
