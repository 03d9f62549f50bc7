#include "tasks/sweep/cost.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "tasks/io/files.h"
#include "tasks/runner/program.h"
#include "tasks/runner/step_cost.h"

namespace reel {

namespace {

StepCost measure(const Sweep& sweep, const SweepRun& run, const std::function<bool()>& stop) {
  try {
    return measure_step(sweep.task, sweep.options_of(run, measured_updates), sweep.has_epochs, sweep.folder + "/cost",
                        stop);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", run.name, e.what()));
  }
}

}  // namespace

std::vector<double> run_costs(const Sweep& sweep, const std::function<bool(std::size_t)>& step) {
  const std::string path = sweep.folder + "/costs.json";
  auto known = nlohmann::ordered_json::parse(text_if_there(path), nullptr, false);
  if (!known.is_object()) known = nlohmann::ordered_json::object();
  std::vector<double> costs;
  std::size_t left = sweep.combinations.size();
  for (std::size_t at = 0; at < sweep.combinations.size(); ++at, --left) {
    const Combination& c = sweep.combinations[at];
    const std::string name = folder_name(c.point);
    const auto number = [&](const char* key) {
      return known.contains(name) && known[name].is_object() && known[name].contains(key) &&
                     known[name][key].is_number()
                 ? known[name][key].get<double>()
                 : -1;
    };
    if (number("update") < 0 || number("validation") < 0) {
      const StepCost cost =
          measure(sweep, {at, 1, c.point.empty() ? sweep.task : text_of(c.point)}, [&] { return step(left); });
      known[name] = {{"update", cost.update}, {"validation", cost.validation}};
      write_atomically(path, known.dump(1) + "\n");
    }
    costs.push_back(StepCost{number("update"), number("validation")}.of(c.updates, c.validation));
  }
  return costs;
}

std::vector<std::size_t> affordable(const Sweep& sweep, std::vector<std::size_t> order,
                                    const std::vector<double>& costs, double seconds) {
  const auto cost = [&](std::size_t run) { return costs[sweep.runs[run].at]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
  double total = 0;
  std::size_t n = 0;
  while (n < order.size() && total + cost(order[n]) <= seconds) total += cost(order[n++]);
  order.resize(n);
  return order;
}

}  // namespace reel
