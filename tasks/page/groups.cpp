#include "tasks/page/groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tasks/app/run_names.h"

namespace reel::page {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string value_of(const RunData& data, const std::string& option) {
  for (const auto& [name, value] : data.options)
    if (name == option) return value;
  return "";
}

std::string text_of(const nlohmann::ordered_json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

/// Options with several values among the runs that have them; "task" is one.
std::vector<std::string> differing(const std::vector<ReadRun>& runs) {
  std::vector<std::string> names;
  std::map<std::string, std::set<std::string>> values;
  for (const ReadRun& run : runs) {
    values["task"].insert(text_of(run.data.record, "task"));
    for (const auto& [name, value] : run.data.options)
      if (name != "seed" && !only_shows(name)) values[name].insert(value);
  }
  values["task"].erase("");  // a run that has not ended may not say
  for (const char* first : {"task", "cell", "hidden"})
    if (values[first].size() > 1) names.emplace_back(first);
  for (const auto& [name, all] : values)
    if (all.size() > 1 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

/// "lstm, lr 0.01": names of options are left out where their values speak for themselves.
std::string name_of(const std::vector<std::string>& options, const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (values[i].empty()) continue;
    const bool plain = options[i] == "cell" || options[i] == "task" || options[i] == "optimizer";
    out += (out.empty() ? "" : ", ") + (plain ? values[i] : options[i] + " " + values[i]);
  }
  return out;
}

/// A row made of one number of each row.
template <class F>
RunFolder::Row combined(const std::vector<RunFolder::Row>& rows, const F& of) {
  RunFolder::Row out = rows.front();
  for (const auto column : {&RunFolder::Row::seconds, &RunFolder::Row::train_loss, &RunFolder::Row::valid_loss,
                            &RunFolder::Row::accuracy, &RunFolder::Row::grad_norm}) {
    std::vector<double> values;
    for (const RunFolder::Row& row : rows) values.push_back(row.*column);
    const bool known = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    out.*column = known ? of(values) : nan;
  }
  return out;
}

}  // namespace

std::vector<double> Group::numbers(const std::string& metric) const {
  std::vector<double> out;
  for (const ReadRun* run : runs)
    if (const auto found = run->numbers.find(metric); found != run->numbers.end()) out.push_back(found->second);
  return out;
}

std::map<std::string, double> numbers_of(const RunData& data) {
  std::map<std::string, double> out;
  const auto take = [&](const std::string& name, double value) {
    if (std::isfinite(value)) out[name] = value;
  };
  if (!data.rows.empty()) {
    const RunFolder::Row& last = data.rows.back();
    take("train_loss", last.train_loss);
    take("valid_loss", last.valid_loss);
    take("accuracy", last.accuracy);
    take("grad_norm", last.grad_norm);
    double best = nan;
    for (const RunFolder::Row& row : data.rows)
      best = std::fmin(best, row.valid_loss);  // of a number and NaN the number
    take("best valid_loss", best);
  }
  if (const auto test = data.record.find("test"); test != data.record.end() && test->is_object())
    for (const auto& [name, value] : test->items())
      if (name != "step" && value.is_number()) take("test." + name, value.get<double>());
  return out;
}

SeedRows over_seeds(const std::vector<const ReadRun*>& runs) {
  std::map<std::int64_t, std::vector<RunFolder::Row>> steps;
  std::size_t seeds = 0;
  for (const ReadRun* run : runs) {
    if (run->data.rows.empty()) continue;  // it has not begun
    ++seeds;
    for (const RunFolder::Row& row : run->data.rows) steps[row.step].push_back(row);
  }
  SeedRows out;
  for (const auto& [step, rows] : steps) {
    if (rows.size() < seeds) continue;
    out.mean.push_back(combined(rows, [](const auto& values) { return mean(values); }));
    out.low.push_back(combined(rows, [](const auto& v) { return *std::min_element(v.begin(), v.end()); }));
    out.high.push_back(combined(rows, [](const auto& v) { return *std::max_element(v.begin(), v.end()); }));
  }
  return out;
}

Groups group(const std::vector<ReadRun>& runs, const Comparison& comparison) {
  Groups out{differing(runs), {}};
  for (const ReadRun& run : runs) {
    std::vector<std::string> values;
    for (const std::string& option : out.differing)
      values.push_back(option == "task" ? text_of(run.data.record, "task") : value_of(run.data, option));
    std::string name = run.run->group.empty() ? name_of(out.differing, values) : run.run->group;
    if (name.empty()) name = runs.size() == 1 ? run.run->name : "all runs";
    const auto same = [&](const Group& g) {
      return run.run->group.empty() ? g.values == values : g.name == run.run->group;
    };
    auto found = std::find_if(out.groups.begin(), out.groups.end(), same);
    if (found == out.groups.end()) found = out.groups.insert(found, Group{name, values, {}, {}});
    found->runs.push_back(&run);
  }
  for (Group& g : out.groups) g.rows = over_seeds(g.runs);
  std::stable_sort(out.groups.begin(), out.groups.end(), [&](const Group& a, const Group& b) {
    const double x = mean(a.numbers(comparison.metric)), y = mean(b.numbers(comparison.metric));
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    return comparison.higher_is_better ? x > y : x < y;
  });
  return out;
}

}  // namespace reel::page
