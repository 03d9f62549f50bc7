#include "tasks/sweep/work.h"

#include <fmt/core.h>

#include <filesystem>
#include <thread>

#include "engine/core/error.h"
#include "tasks/runner/record.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds pause(100);
constexpr std::chrono::seconds between_looks(1);

}  // namespace

Work::Work(const Sweep& sweep, std::vector<std::size_t> order, std::optional<Clock::time_point> end)
    : sweep_(sweep), order_(std::move(order)), end_(end) {
  look(true);
}

bool Work::stopping() const { return interrupt_.requested() || (end_ && Clock::now() >= *end_); }

void Work::look(bool now) {
  if (!now && Clock::now() - looked_ < between_looks) return;
  states_ = read_states(sweep_, failed_);
  for (const std::size_t at : here_) states_[at].claimed = true;
  looked_ = Clock::now();
}

std::vector<RunState> Work::states() {
  const std::lock_guard lock(mutex_);
  look(false);
  return states_;
}

Untold Work::untold() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::optional<std::size_t> Work::next(bool& waiting) {
  const std::lock_guard lock(mutex_);
  look(false);
  const Wanted goal = wanted(sweep_, states_);
  waiting = false;
  for (const std::size_t at : order_) {
    const RunState& s = states_[at];
    if (!s.problem.empty() || s.has(goal.updates[at])) continue;
    waiting = true;
    const auto taken = taken_.find(at);
    if (here_.contains(at) || (taken != taken_.end() && Clock::now() - taken->second < between_looks)) continue;
    here_.insert(at);
    return at;
  }
  return std::nullopt;
}

void Work::help() {
  while (!stopping()) {
    bool waiting = false;
    if (const auto at = next(waiting)) {
      do_run(*at);
      const std::lock_guard lock(mutex_);
      here_.erase(*at);
    } else if (waiting) {
      std::this_thread::sleep_for(pause);
    } else {
      return;
    }
  }
}

std::optional<Attempted> Work::do_run(std::size_t at) {
  std::int64_t updates = 0;
  {
    const std::lock_guard lock(mutex_);
    states_[at] = read_state(sweep_, sweep_.runs[at]);
    updates = wanted(sweep_, states_).updates[at];
    if (states_[at].has(updates)) return std::nullopt;
  }
  const Attempted result = run_up_to(at, updates);
  const std::lock_guard lock(mutex_);
  if (result.end == Attempted::End::taken) taken_[at] = Clock::now();
  states_[at] = read_state(sweep_, sweep_.runs[at]);
  if (failed_.contains(at)) states_[at].problem = failed_[at];
  return result;
}

Attempted Work::run_up_to(std::size_t at, std::int64_t updates) {
  const SweepRun& run = sweep_.runs[at];
  const std::string folder = sweep_.folder_of(run);
  const std::string record_file = folder + "/run.json";
  const auto written = [&] {
    std::error_code error;
    return fs::last_write_time(record_file, error);
  };
  const auto before = written();
  Attempt a{sweep_.task, sweep_.options_of(run, updates), {}, folder, folder, {}, {}};
  if (sweep_.halving > 0) a.with_resume.push_back(fmt::format("--steps={}", updates));
  a.kept = [&] { return read_state(sweep_, run).has(updates); };
  a.finished = [&] {  // with fewer updates, too: then it stopped by its own rules
    const auto record = read_summary(folder);
    return record && record->finished && written() != before;
  };
  a.unfinish = [&] {
    std::error_code error;
    fs::remove(record_file, error);
  };
  Attempted result = attempt(a, [&](const std::string&) { return stopping(); });
  try {
    const std::int64_t reached = read_state(sweep_, run).reached;
    if (result.end == Attempted::End::done) {
      if (reached < updates)  // it stopped by its own rules
        note_ending(folder, {updates});
      else
        drop_note(folder);
    }
    if (result.end != Attempted::End::failed) return result;
    const auto record = read_summary(folder);
    note_ending(folder, {reached, result.problem, record && record->diverged_at_step >= 0});
  } catch (const Error& e) {  // a full disk, for one
    if (result.end == Attempted::End::done) result = {Attempted::End::failed, e.what(), result.seconds};
    const std::lock_guard lock(mutex_);
    failed_[at] = result.problem;
  }
  return result;
}

}  // namespace reel
