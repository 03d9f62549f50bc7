#include "tasks/sweep/cost.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "engine/core/error.h"
#include "tasks/runner/program.h"
#include "tasks/runner/step_cost.h"

namespace reel {

namespace {

/// What an update costs; nothing if the program fails, of which its run will tell. Throws Error if it is stopped.
std::optional<StepCost> measure(const Sweep& sweep, const SweepRun& run, const std::function<bool()>& stop) {
  bool stopped = false;
  try {
    return measure_step(sweep.task, sweep.options_of(run, measured_updates), sweep.folder + "/cost",
                        [&] { return stopped = stop() || stopped; });
  } catch (const Error&) {
    if (stopped) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<double> run_costs(const Sweep& sweep, const std::vector<std::size_t>& order,
                              const std::function<bool(std::size_t)>& step) {
  const std::string path = sweep.folder + "/costs.json";
  auto known = nlohmann::ordered_json::parse(text_if_there(path), nullptr, false);
  if (!known.is_object()) known = nlohmann::ordered_json::object();
  std::vector<double> costs(sweep.combinations.size(), 0.0);
  std::set<std::size_t> wanted;
  for (const std::size_t i : order) wanted.insert(sweep.runs[i].at);
  std::size_t left = wanted.size() + 1;
  for (const std::size_t at : wanted) {
    --left;
    const Combination& c = sweep.combinations[at];
    const std::string name = folder_name(c.point);
    const auto same_threads = [&] {  // an older Reel did not write them
      const auto threads = known[name].find("threads");
      return threads == known[name].end() ? sweep.threads == 1 : *threads == sweep.threads;
    };
    const auto number = [&](const char* key) {
      return known.contains(name) && known[name].is_object() && same_threads() && known[name].contains(key) &&
                     known[name][key].is_number()
                 ? known[name][key].get<double>()
                 : -1;
    };
    if (number("update") < 0 || number("validation") < 0) {
      const auto cost = measure(sweep, {at, 1, ""}, [&] { return step(left); });
      if (!cost) continue;
      known[name] = {{"update", cost->update}, {"validation", cost->validation}, {"threads", sweep.threads}};
      add_cost(path, name, known[name]);
    }
    costs[at] = StepCost{number("update"), number("validation")}.of(c.updates, c.validation);
  }
  return costs;
}

double cost_left(const Sweep& sweep, const SweepRun& run, double whole) {
  return whole * share_left(sweep.folder_of(run), sweep.of(run).updates);
}

Schedule affordable(const std::vector<std::size_t>& order, const std::vector<double>& costs, std::size_t jobs,
                    double seconds) {
  std::vector<std::size_t> cheapest(order.size());
  std::iota(cheapest.begin(), cheapest.end(), std::size_t{0});
  std::ranges::stable_sort(cheapest, {}, [&](std::size_t i) { return costs[i]; });
  std::vector<double> busy(jobs, 0.0);  // until when each worker is
  Schedule plan;
  for (const std::size_t i : cheapest) {
    double& free = *std::ranges::min_element(busy);
    if (free + costs[i] > seconds) break;
    free += costs[i];
    plan.seconds = std::max(plan.seconds, free);
    plan.runs.push_back(order[i]);
  }
  return plan;
}

}  // namespace reel
