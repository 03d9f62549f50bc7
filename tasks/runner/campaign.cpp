#include "tasks/runner/campaign.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/cpu/threads/cores.h"
#include "engine/core/error.h"
#include "tasks/runner/live_line.h"
#include "tasks/runner/pool.h"
#include "tasks/runner/program.h"
#include "tasks/runner/results.h"
#include "tasks/runner/step_cost.h"

namespace reel {

namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::size_t table, row;
  std::uint64_t seed;
  double cost = 0;  // seconds; 0: not known
};

using Stored = std::map<std::pair<std::string, std::uint64_t>, PresetRun>;  // by preset and seed

/// What the results have of these tables.
Stored stored_runs(const std::vector<Chosen>& chosen, const std::string& results) {
  Stored out;
  std::vector<std::string> stale;
  for (const Chosen& c : chosen)
    for (const ReportRow& row : stored_report(c.whole, results, stale).rows)
      for (const PresetRun& run : row.runs)
        if (run.done() || run.diverged) out[{row.preset.name, run.seed}] = run;
  return out;
}

/// The stored run if it is the one that is asked for, and its folder is gone: only then it would be run again. Or why
/// there is no run: it would take the place of one with other data.
std::optional<PresetRun> stored_result(const Stored& stored, const Preset& p, const PresetRunOptions& how,
                                       const std::string& results) {
  const auto at = stored.find({p.name, how.seed});
  if (at == stored.end() || how.budget != 1) return std::nullopt;
  PresetRun planned = planned_run(p, how);
  planned.problem = other_data(planned, at->second.data, results);
  if (!planned.problem.empty()) {
    planned.folder.clear();
    return planned;
  }
  std::error_code error;
  if (at->second.command != planned.command || std::filesystem::exists(planned.folder, error)) return std::nullopt;
  return at->second;
}

/// Seconds that a run of a preset takes: as an earlier one took, or by its updates and validations, measured now or by
/// an earlier call. Only those with the same threads and device count.
class Costs {
 public:
  Costs(const CampaignOptions& o, const Stored& stored) : o_(o), runs_(stored), file_(o.run.root + "/costs.json") {
    known_ = nlohmann::ordered_json::parse(text_if_there(file_), nullptr, false);
    if (!known_.is_object()) known_ = nlohmann::ordered_json::object();
    const std::int64_t threads = o.run.threads > 0 ? o.run.threads : available_cores();
    const std::string device = o.run.device.empty() ? "cpu" : o.run.device;
    for (const auto& [run, result] : stored)
      if (result.done() && std::isfinite(result.seconds) && result.threads == threads && result.device == device)
        stored_[run.first] = result.seconds;
    setting_ = fmt::format("{} on {}", o.run.threads, device);
  }

  /// What is left of a run; 0 if nothing is, or there will be none.
  double left(const Preset& p, std::uint64_t seed, const std::function<bool()>& stop) {
    if (p.task == "mechanism") return 0;  // has no updates, and takes seconds
    PresetRunOptions how = o_.run;
    how.seed = seed;
    if (stored_result(runs_, p, how, o_.results)) return 0;
    std::error_code error;
    if (how.budget == 1 && !std::filesystem::exists(planned_run(p, how).folder, error)) return whole_cost(p, stop);
    const std::int64_t whole = number_behind(said_of(p, stop), "\nupdates ");
    const double share = share_left(p, how, whole);
    if (share == 0) return 0;
    return whole_cost(p, stop) * share * static_cast<double>(planned_updates(how, whole)) /
           static_cast<double>(std::max<std::int64_t>(1, whole));
  }

  /// True if something was measured in this call.
  bool measured() const { return measured_; }

 private:
  std::vector<std::string> options_of(const Preset& p) const {
    std::vector<std::string> options{"--preset", p.name};
    if (!o_.run.data.empty() && reads_files(p)) options.push_back("--data=" + o_.run.data);
    if (o_.run.threads > 0) options.push_back(fmt::format("--threads={}", o_.run.threads));
    if (!o_.run.device.empty()) options.push_back("--device=" + o_.run.device);
    return options;
  }

  /// What the program says of the preset.
  const std::string& said_of(const Preset& p, const std::function<bool()>& stop) {
    auto at = said_.find(p.name);
    if (at == said_.end()) at = said_.emplace(p.name, dry_run(p.task, options_of(p), stop)).first;
    return at->second;
  }

  double whole_cost(const Preset& p, const std::function<bool()>& stop) {
    if (const auto at = stored_.find(p.name); at != stored_.end()) return at->second;
    const std::string key = fmt::format("{} {} {}", p.name, mark_of_preset(p), setting_);
    if (!known_.contains(key) || !known_[key].is_number()) {
      const std::string& said = said_of(p, stop);
      const StepCost cost = measure_step(p.task, options_of(p), o_.run.root + "/cost", stop);
      known_[key] = cost.of(number_behind(said, "\nupdates "), number_behind(said, "validation every "));
      measured_ = true;
      add_cost(file_, key, known_[key]);
    }
    return known_[key].get<double>();
  }

  const CampaignOptions& o_;
  const Stored& runs_;
  std::string file_, setting_;
  nlohmann::ordered_json known_;
  std::map<std::string, double> stored_;
  std::map<std::string, std::string> said_;
  bool measured_ = false;
};

/// Puts the cheapest runs first. A preset that cannot start costs nothing, so that its row says why. True if something
/// was measured for it.
bool cheapest_first(std::vector<Job>& jobs, const std::vector<Chosen>& chosen, const Stored& stored,
                    const CampaignOptions& o, const Interrupt& interrupt) {
  Costs costs(o, stored);
  LiveLine live(true);
  for (Job& job : jobs) {
    const Preset& p = chosen[job.table].report.rows[job.row].preset;
    live.show(fmt::format("measuring what an update of {} costs", p.name));
    try {
      job.cost = costs.left(p, job.seed, [&] { return interrupt.requested(); });
    } catch (const Error&) {
      job.cost = 0;
    }
    if (interrupt.requested()) break;
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.cost < b.cost; });
  return costs.measured();
}

/// The runs, some at a time, and what became of them.
class Campaign {
 public:
  Campaign(std::vector<Chosen>& chosen, const CampaignOptions& o, const Interrupt& interrupt,
           const std::function<void(std::size_t, std::size_t)>& complete);
  CampaignEnd run();

 private:
  void run(const Job& job);
  void end(std::size_t table, std::size_t row);
  /// Seconds.
  double left() const {
    return o_.hours > 0 ? o_.hours * 3600 - std::chrono::duration<double>(Clock::now() - start_).count() : INFINITY;
  }

  const Clock::time_point start_ = Clock::now();
  std::vector<Chosen>& chosen_;
  const CampaignOptions& o_;
  const Interrupt& interrupt_;
  const std::function<void(std::size_t, std::size_t)>& complete_;
  const Stored stored_;
  std::vector<Job> jobs_;
  std::vector<std::vector<std::vector<PresetRun>>> runs_;  // [table][row][seed]
  std::vector<std::vector<std::size_t>> open_;             // runs of a row that have not ended

  std::mutex mutex_;  // of all that follows, and of what is printed
  LiveLine live_;
  std::size_t running_ = 0, skipped_ = 0, cut_ = 0;
  double cheapest_ = INFINITY;  // of those skipped
  bool worked_ = false;         // the next call has less to do
};

Campaign::Campaign(std::vector<Chosen>& chosen, const CampaignOptions& o, const Interrupt& interrupt,
                   const std::function<void(std::size_t, std::size_t)>& complete)
    : chosen_(chosen), o_(o), interrupt_(interrupt), complete_(complete), stored_(stored_runs(chosen, o.results)) {
  const auto seeds = static_cast<std::size_t>(o.seeds);
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    const std::size_t rows = chosen[t].report.rows.size();
    runs_.emplace_back(rows, std::vector<PresetRun>(seeds));
    open_.emplace_back(rows, seeds);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t s = 0; s < seeds; ++s) jobs_.push_back({t, r, s + 1});
  }
}

CampaignEnd Campaign::run() {
  worked_ = o_.hours > 0 && cheapest_first(jobs_, chosen_, stored_, o_, interrupt_);
  in_parallel(jobs_.size(), static_cast<std::size_t>(o_.jobs), [&](std::size_t i) { run(jobs_[i]); });
  for (std::size_t t = 0; t < open_.size(); ++t)
    for (std::size_t r = 0; r < open_[t].size(); ++r)
      if (open_[t][r] > 0) end(t, r);
  const bool goes_on = cut_ > 0 || (worked_ && cheapest_ < o_.hours * 3600);
  return {jobs_.size(), skipped_ + cut_, skipped_ > 0 && !goes_on ? cheapest_ : 0};
}

/// Called for several at once.
void Campaign::run(const Job& job) {
  if (interrupt_.requested()) return;
  if (left() < job.cost) {
    const std::lock_guard lock(mutex_);
    ++skipped_;
    cheapest_ = std::min(cheapest_, job.cost);
    return;
  }
  const Preset& preset = chosen_[job.table].report.rows[job.row].preset;
  PresetRunOptions how = o_.run;
  how.seed = job.seed;
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  const auto waiting = [&](const std::string& line) {
    const std::lock_guard lock(mutex_);
    const std::string others = running_ > 1 ? fmt::format("{} running: ", running_) : "";
    const std::string name = chosen_.size() > 1 ? preset.name : preset.label;
    live_.show(fmt::format("{}{}, seed {}: {}", others, name, job.seed, line));
    return interrupt_.requested() || left() < 0;
  };
  std::optional<PresetRun> known = stored_result(stored_, preset, how, o_.results);
  PresetRun run = known ? *std::move(known) : run_preset(preset, how, waiting);
  const std::lock_guard lock(mutex_);
  --running_;
  if (run.interrupted && !interrupt_.requested()) ++cut_;
  if (!run.kept && run.problem.empty()) worked_ = true;
  runs_[job.table][job.row][job.seed - 1] = std::move(run);
  if (--open_[job.table][job.row] == 0) end(job.table, job.row);
}

/// Puts the runs of a row into its report.
void Campaign::end(std::size_t table, std::size_t row) {
  std::vector<PresetRun>& ended = chosen_[table].report.rows[row].runs;
  for (PresetRun& run : runs_[table][row])
    if (!run.folder.empty() || !run.problem.empty() || run.kept) ended.push_back(std::move(run));
  if (ended.empty()) return;  // stopped before it began
  live_.clear();
  complete_(table, row);
}

}  // namespace

CampaignEnd run_campaign(std::vector<Chosen>& chosen, const CampaignOptions& o, const Interrupt& interrupt,
                         const std::function<void(std::size_t, std::size_t)>& complete) {
  return Campaign(chosen, o, interrupt, complete).run();
}

}  // namespace reel
