#include "tasks/sweep/cost.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/app/run_folder.h"
#include "tasks/io/files.h"
#include "tasks/io/spawn.h"
#include "tasks/runner/program.h"
#include "tasks/runner/record.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t measured_updates = 8, measured_interval = 4;

struct Cost {
  double update = 0, validation = 0;  // seconds
};

Cost measure(const Sweep& sweep, const SweepRun& run, const std::function<bool()>& stop) {
  const std::string folder = sweep.folder + "/cost";
  std::error_code error;
  fs::remove_all(folder, error);
  std::vector<std::string> words{program_of(sweep.task)};
  for (const std::string& word : sweep.options_of(run, measured_updates)) words.push_back(word);
  for (const std::string& word :
       {fmt::format("--steps={}", measured_updates), fmt::format("--valid-every={}", measured_interval),
        "--out=" + folder, std::string("--quiet"), std::string("--stop-below=0")})
    words.push_back(word);
  if (sweep.has_epochs) words.insert(words.end(), {"--epochs=0", "--no-test"});
  const Spawned ran = run_child(words, "", stop);
  if (ran.code != 0)
    throw Error(fmt::format("{}: {}", run.name, last_line(ran.err).empty() ? ran.problem : last_line(ran.err)));
  const auto record = read_summary(folder, sweep.metric);
  const auto rows = RunFolder::view(folder).rows();
  if (!record || rows.size() < 2) throw Error(run.name, "left no result of the updates that were to be timed");
  const Cost cost{record->update_seconds, std::max(0.0, rows.back().seconds - rows.front().seconds -
                                                            measured_interval * record->update_seconds)};
  fs::remove_all(folder, error);
  return cost;
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
      const Cost cost =
          measure(sweep, {at, 1, c.point.empty() ? sweep.task : text_of(c.point)}, [&] { return step(left); });
      known[name] = {{"update", cost.update}, {"validation", cost.validation}};
      write_atomically(path, known.dump(1) + "\n");
    }
    const auto updates = static_cast<double>(c.updates), every = static_cast<double>(c.validation);
    costs.push_back(updates * number("update") + std::ceil(updates / every) * number("validation"));
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
