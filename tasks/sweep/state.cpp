#include "tasks/sweep/state.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tasks/app/curves.h"
#include "tasks/io/files.h"
#include "tasks/runner/claim.h"
#include "tasks/runner/program.h"
#include "tasks/runner/record.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

std::string note_of(const std::string& folder) { return folder + "/worker.json"; }

/// The metric of a run at a number of updates, the less the better; infinite if it has none, or failed before.
double rank_value(const Sweep& sweep, const SweepRun& run, std::int64_t updates, bool failed) {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::int64_t last = 0;
  try {
    for (const RunFolder::Row& row : RunFolder::view(sweep.folder_of(run)).rows())
      if (row.step <= updates) value = metric_of(row, sweep.metric), last = row.step;
  } catch (const Error&) {
  }
  if (!std::isfinite(value) || (failed && last < updates)) return std::numeric_limits<double>::infinity();
  return sweep.higher_is_better() ? -value : value;
}

/// The best part of these combinations at a rung, in their order.
std::vector<std::size_t> best_of(const Sweep& sweep, const std::vector<RunState>& states,
                                 const std::vector<std::size_t>& combinations, std::size_t rung) {
  std::vector<std::pair<double, std::size_t>> ranked;
  for (const std::size_t at : combinations) {
    double total = 0;
    int n = 0;
    for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
      if (sweep.runs[i].at != at) continue;
      const std::int64_t updates = sweep.rungs_of(sweep.runs[i])[rung];
      total += rank_value(sweep, sweep.runs[i], updates, !states[i].problem.empty());
      ++n;
    }
    ranked.emplace_back(total / n, at);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto factor = static_cast<std::size_t>(sweep.halving);
  ranked.resize(std::max<std::size_t>(1, (ranked.size() + factor / 2) / factor));
  std::vector<std::size_t> kept;
  for (const auto& [value, at] : ranked) kept.push_back(at);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

RunState read_state(const Sweep& sweep, const SweepRun& run) try {
  RunState state;
  const std::string folder = sweep.folder_of(run);
  const auto note = nlohmann::json::parse(text_if_there(note_of(folder)), nullptr, false);
  if (note.is_object()) {
    if (note.contains("reached") && note["reached"].is_number_integer()) state.reached = note["reached"];
    if (note.contains("problem") && note["problem"].is_string()) state.problem = note["problem"];
    state.final = note.contains("final") && note["final"] == true;
  }
  std::error_code error;
  state.locked = fs::exists(folder + "/lock", error);
  const auto record = read_summary(folder);
  const std::int64_t steps = record && record->finished ? record->steps : 0;
  state.noted = state.reached > steps;
  state.reached = std::max(state.reached, steps);
  if (state.reached >= sweep.of(run).updates) state.problem.clear();
  state.claimed = claimed(folder);
  return state;
} catch (const Error& e) {
  return {.problem = e.what(), .final = true};  // whatever is there stays
}

std::vector<RunState> read_states(const Sweep& sweep, const Untold& untold) {
  std::vector<RunState> states;
  for (const SweepRun& run : sweep.runs) states.push_back(read_state(sweep, run));
  for (const auto& [at, problem] : untold) states[at].problem = problem;
  return states;
}

void note_ending(const std::string& folder, const Ending& ending) {
  nlohmann::ordered_json json{{"reached", ending.reached}};
  if (!ending.problem.empty()) {
    json["problem"] = ending.problem;
    json["final"] = ending.final;
  }
  write_atomically(note_of(folder), json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void drop_note(const std::string& folder) {
  std::error_code error;
  fs::remove(note_of(folder), error);
}

void tidy(const Sweep& sweep) {
  for (const SweepRun& run : sweep.runs) {
    const RunState state = read_state(sweep, run);
    const std::string folder = sweep.folder_of(run);
    if (!state.noted && !state.final)
      drop_note(folder);
    else if (!state.problem.empty() && !state.final)
      note_ending(folder, {state.reached});
    if (state.has(sweep.of(run).updates)) clear_dead_claim(folder);
  }
}

Wanted wanted(const Sweep& sweep, const std::vector<RunState>& states) {
  const std::size_t rungs = sweep.rungs_of(sweep.runs.front()).size();
  std::vector<std::size_t> combinations(sweep.combinations.size());
  std::iota(combinations.begin(), combinations.end(), std::size_t{0});
  Wanted out;
  for (const RunState& state : states) out.updates.push_back(state.reached);
  for (std::size_t rung = 0; rung < rungs; ++rung) {
    bool ended = true;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!std::binary_search(combinations.begin(), combinations.end(), sweep.runs[i].at)) continue;
      const std::int64_t updates = sweep.rungs_of(sweep.runs[i])[rung];
      out.updates[i] = std::max(updates, states[i].reached);
      ended = ended && (states[i].reached >= updates || !states[i].problem.empty());
    }
    out.last = rung + 1 == rungs;
    if (!ended || out.last) break;
    combinations = best_of(sweep, states, combinations, rung);
  }
  return out;
}

Counts count(const Sweep& sweep, const std::vector<RunState>& states) {
  const Wanted goal = wanted(sweep, states);
  Counts counts;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const RunState& s = states[i];
    const bool here = s.has(goal.updates[i]), whole = s.has(sweep.of(sweep.runs[i]).updates);
    if (!s.problem.empty())
      ++counts.failed;
    else if (whole)
      ++counts.done;
    else if (here && goal.last)
      ++counts.dropped;
    else
      ++counts.left, counts.running += s.claimed;
  }
  return counts;
}

std::string runs_text(std::size_t count) { return fmt::format("{} run{}", count, count == 1 ? "" : "s"); }

std::string text_of(const Counts& c) {
  std::string out = fmt::format("{} of {} runs done", c.done, c.done + c.failed + c.dropped + c.left);
  if (c.dropped > 0) out += fmt::format(", {} dropped", c.dropped);
  if (c.running > 0) out += fmt::format(", {} running", c.running);
  if (c.failed > 0) out += fmt::format(", {} failed", c.failed);
  return out;
}

}  // namespace reel
