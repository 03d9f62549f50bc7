#include "tasks/page/groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "engine/core/parse.h"
#include "tasks/app/run_json.h"
#include "tasks/app/run_names.h"

namespace reel::page {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string value_of(const RunData& data, const std::string& option) {
  for (const auto& [name, value] : data.options)
    if (name == option) return value;
  return "";
}

/// True for an option by which runs that are compared by the metric do not differ.
bool changes_nothing(const std::string& option, const std::string& metric) {
  if (option == "solved-below" && metric.starts_with("solved_at.")) return false;
  return reel::changes_nothing(option);
}

/// Options with several values among the runs that have them; "task" is one.
std::vector<std::string> differing(const std::vector<ReadRun>& runs, const std::string& metric) {
  std::vector<std::string> names;
  std::map<std::string, std::set<std::string>> values;
  for (const ReadRun& run : runs) {
    values["task"].insert(text_in(run.data.record, "task"));
    for (const auto& [name, value] : run.data.options)
      if (name != "seed" && !changes_nothing(name, metric)) values[name].insert(value);
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

std::int64_t updates_of(const RunData& data) { return data.rows.empty() ? 0 : data.rows.back().step; }

bool finished(const ReadRun& run) {
  const auto found = run.data.record.find("finished");
  return found != run.data.record.end() && *found == true;
}

/// The updates that a run was to do, if it has ended: one that stopped by its own rules counts as complete.
std::int64_t complete_updates(const ReadRun& run) {
  const std::int64_t steps = parse<std::int64_t>(value_of(run.data, "steps")).value_or(0);
  return finished(run) ? std::max(steps, updates_of(run.data)) : updates_of(run.data);
}

/// True if two runs of a group are the same: with the same seed, and no option differs that changes what they learn.
bool same_run(const ReadRun& a, const ReadRun& b, const std::string& metric) {
  const auto options = [&](const ReadRun& run) {
    std::map<std::string, std::string> out(run.data.options.begin(), run.data.options.end());
    std::erase_if(out, [&](const auto& option) { return changes_nothing(option.first, metric); });
    return out;
  };
  return !a.seed.empty() && a.seed == b.seed && options(a) == options(b);
}

/// Adds a run to a group, or takes the one with more updates, or more numbers (of a test), if the group has the same
/// run already.
void add_run(Group& g, const ReadRun& run, const std::string& metric, std::vector<std::string>& repeated) {
  const auto found =
      std::find_if(g.runs.begin(), g.runs.end(), [&](const ReadRun* r) { return same_run(*r, run, metric); });
  if (found == g.runs.end()) return g.runs.push_back(&run);
  const ReadRun* less = &run;
  const auto extent = [](const ReadRun& r) { return std::pair(updates_of(r.data), r.numbers.size()); };
  if (extent(run) > extent(**found)) std::swap(*found, less);
  repeated.push_back(
      fmt::format("{}: has the options and the seed of {}, which alone counts", less->run->name, (*found)->run->name));
}

/// What comes before the metric in the order of groups, more first: updates, where they count, whether there is a
/// number, whether all runs are comparable, and how few of them never solved the task, if that is the metric.
auto standing(const Group& g, const Comparison& comparison) {
  std::int64_t updates = 0;
  if (comparison.most_updates_first) {
    updates = std::numeric_limits<std::int64_t>::max();
    for (const ReadRun* run : g.counted) updates = std::min(updates, complete_updates(*run));
  }
  const auto [fewest, most] = g.updates();
  const bool ended = std::all_of(g.counted.begin(), g.counted.end(), [](const ReadRun* run) { return finished(*run); });
  const bool whole = std::ranges::none_of(g.runs, &ReadRun::diverged) && (fewest == most || ended);
  const std::vector<double> numbers = g.numbers(comparison.metric);
  const auto never = std::ranges::count_if(numbers, [](double value) { return std::isinf(value); });
  return std::tuple(updates, !std::isnan(mean(numbers)), whole, -never);
}

}  // namespace

std::vector<double> Group::numbers(const std::string& metric) const {
  std::vector<double> out;
  for (const ReadRun* run : counted)
    if (const auto found = run->numbers.find(metric); found != run->numbers.end() && !run->diverged())
      out.push_back(found->second);
  return out;
}

std::pair<std::int64_t, std::int64_t> Group::updates() const {
  std::pair<std::int64_t, std::int64_t> out;
  for (const ReadRun* run : counted) {
    const std::int64_t n = updates_of(run->data);
    if (n > 0) out = {out.first == 0 ? n : std::min(out.first, n), std::max(out.second, n)};
  }
  return out;
}

std::map<std::string, double> numbers_of(const RunData& data, const std::string& metric) {
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
  if (const double other = metric_in(data.record, metric); !out.contains(metric) && !std::isnan(other))
    out[metric] = other;  // infinite: never solved
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
  Groups out{differing(runs, comparison.metric), {}, {}};
  for (const ReadRun& run : runs) {
    std::vector<std::string> values;
    for (const std::string& option : out.differing)
      values.push_back(option == "task" ? text_in(run.data.record, "task") : value_of(run.data, option));
    std::string name = run.run->group.empty() ? name_of(out.differing, values) : run.run->group;
    if (name.empty()) name = runs.size() == 1 ? run.run->name : "all runs";
    const auto same = [&](const Group& g) {
      return run.run->group.empty() ? g.values == values : g.name == run.run->group;
    };
    auto found = std::find_if(out.groups.begin(), out.groups.end(), same);
    if (found == out.groups.end()) found = out.groups.insert(found, Group{name, values, {}, {}, {}});
    add_run(*found, run, comparison.metric, out.repeated);
  }
  for (Group& g : out.groups) {
    std::ranges::remove_copy_if(g.runs, std::back_inserter(g.counted), &ReadRun::diverged);
    if (g.counted.empty()) g.counted = g.runs;
    g.rows = over_seeds(g.counted);
  }
  std::stable_sort(out.groups.begin(), out.groups.end(), [&](const Group& a, const Group& b) {
    const auto first = standing(a, comparison), second = standing(b, comparison);
    if (first != second) return first > second;
    const double x = mean(a.numbers(comparison.metric)), y = mean(b.numbers(comparison.metric));
    return comparison.higher_is_better ? x > y : x < y;
  });
  for (Group& g : out.groups) {
    const auto own = standing(g, comparison), best = standing(out.groups.front(), comparison);
    g.ranked = std::get<0>(own) == std::get<0>(best) && std::get<2>(own) == std::get<2>(best);
  }
  return out;
}

}  // namespace reel::page
