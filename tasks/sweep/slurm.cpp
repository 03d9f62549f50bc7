// Jobs of Slurm: a job array whose tasks are workers for one run each.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/core/error.h"
#include "tasks/io/files.h"
#include "tasks/io/output.h"
#include "tasks/io/spawn.h"
#include "tasks/runner/program.h"
#include "tasks/sweep/engines.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_tasks = 1000;  // of an array; Slurm's MaxArraySize is 1001 unless it is set

/// What was submitted: task K of job `id` is run `first` + K, counted from 0.
struct Job {
  std::string id;
  std::size_t first = 0;
};

std::string jobs_file(const Sweep& sweep) { return sweep.folder + "/slurm/jobs.json"; }

std::vector<Job> read_jobs(const Sweep& sweep) {
  std::vector<Job> jobs;
  const auto json = nlohmann::json::parse(text_if_there(jobs_file(sweep)), nullptr, false);
  if (!json.is_array()) return jobs;
  for (const auto& one : json)
    if (one.is_object() && one.contains("id") && one["id"].is_string() && one.contains("first") &&
        one["first"].is_number_unsigned())
      jobs.push_back({one["id"], one["first"]});
  return jobs;
}

void write_jobs(const Sweep& sweep, const std::vector<Job>& jobs) {
  auto json = nlohmann::ordered_json::array();
  for (const Job& job : jobs) json.push_back({{"id", job.id}, {"first", job.first}});
  write_atomically(jobs_file(sweep), json.dump(1) + "\n");
}

/// Where a worker's output goes, as a pattern of Slurm's; a % in the folder's own name is doubled.
std::string log_pattern(const Sweep& sweep) {
  std::string out;
  for (const char c : sweep.folder + "/slurm/") out += c == '%' ? std::string("%%") : std::string(1, c);
  return out + "%A_%a.txt";
}

/// "1-4,7"
std::string ranges(const std::vector<std::size_t>& sorted) {
  std::vector<std::string> parts;
  for (std::size_t i = 0, end; i < sorted.size(); i = end) {
    for (end = i + 1; end < sorted.size() && sorted[end] == sorted[end - 1] + 1;) ++end;
    parts.push_back(end == i + 1 ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[end - 1]));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

/// Runs one of Slurm's programs; throws Error with its words if it fails.
std::string slurm(const std::vector<std::string>& command) {
  const Spawned ran = run_child(command);
  if (ran.code == could_not_start)
    throw Error("--engine slurm",
                fmt::format("{} {}. Hint: run it on a machine that submits jobs", command[0], ran.problem));
  if (ran.code != 0) throw Error("--engine slurm", one_line(command[0] + ": " + last_line(ran.err)));
  return ran.out;
}

/// The runs of these jobs that wait or run.
std::set<std::size_t> queued(const std::vector<Job>& jobs) {
  std::set<std::size_t> out;
  if (jobs.empty()) return out;
  std::map<std::string, std::size_t> first;
  for (const Job& job : jobs) first[job.id] = job.first;
  std::istringstream lines(
      slurm({"squeue", "--noheader", "--array", "--format=%i", fmt::format("--user={}", getuid())}));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find('_');
    const auto job = first.find(line.substr(0, dash));
    if (dash == std::string::npos || job == first.end()) continue;
    const std::size_t task = static_cast<std::size_t>(number_behind(line, "_"));
    out.insert(job->second + task);
  }
  return out;
}

}  // namespace

std::string slurm_script(const Sweep& sweep, const EngineOptions& o, const std::vector<std::size_t>& runs,
                         std::size_t first) {
  std::vector<std::size_t> tasks;
  for (const std::size_t at : runs) tasks.push_back(at - first);
  std::sort(tasks.begin(), tasks.end());
  std::string out = "#!/bin/sh\n";
  const auto line = [&](const std::string& text) { out += "#SBATCH " + text + "\n"; };
  line("--job-name=sweep-" + sweep.task);
  line(fmt::format("--array={}{}", ranges(tasks), o.jobs > 0 ? fmt::format("%{}", o.jobs) : ""));
  line(fmt::format("--ntasks=1 --cpus-per-task={}", sweep.threads));
  line("--requeue --open-mode=append");  // a node that fails costs no run
  line("--signal=B:TERM@60");            // time to save before the limit
  for (const auto& [name, value] :
       {std::pair{"partition", o.partition}, {"time", o.time}, {"gpus", o.gpus}, {"account", o.account}})
    if (!value.empty()) line(fmt::format("--{}={}", name, value));
  std::istringstream more(o.sbatch);
  for (std::string word; more >> word;) line((word.starts_with("-") ? "" : "--") + word);
  return out + fmt::format("exec {} $((SLURM_ARRAY_TASK_ID + {}))\n", worker_command(sweep), first + 1);
}

Submitted submit_slurm(const Sweep& sweep, const std::vector<std::size_t>& order, const EngineOptions& options) {
  std::error_code error;
  fs::create_directories(sweep.folder + "/slurm", error);
  std::vector<Job> jobs = read_jobs(sweep);
  const std::set<std::size_t> waiting = queued(jobs);
  Submitted out;
  out.queued = waiting.size();
  if (sweep.halving > 0 && !waiting.empty()) return out;  // the rungs that follow are queued, too

  const std::vector<RunState> states = read_states(sweep);
  const Wanted goal = wanted(sweep, states);
  const auto wants = [&](std::size_t at) {  // those of a later rung are known when it begins
    return !states[at].has(sweep.halving > 0 ? sweep.of(sweep.runs[at]).updates : goal.updates[at]);
  };
  std::map<std::size_t, std::vector<std::size_t>> blocks;
  for (const std::size_t at : order) {
    if (waiting.contains(at) || !states[at].problem.empty() || !wants(at)) continue;
    blocks[at / most_tasks * most_tasks].push_back(at);
    ++out.runs;
  }
  std::string after;
  for (std::size_t rung = 0; rung < (sweep.halving > 0 ? static_cast<std::size_t>(sweep.rungs) + 1 : 1); ++rung) {
    std::string ids;
    for (const auto& [first, runs] : blocks) {
      const std::string script = fmt::format("{}/slurm/{}.sh", sweep.folder, jobs.size() + 1);
      write_atomically(script, slurm_script(sweep, options, runs, first));
      std::vector<std::string> command{"sbatch", "--parsable", "--output=" + log_pattern(sweep)};
      if (!after.empty()) command.push_back("--dependency=afterany" + after);
      command.push_back(script);
      std::string id = slurm(command);  // "12" or "12;cluster"
      id.resize(std::min(id.find_first_of(";\n"), id.size()));
      jobs.push_back({id, first});
      write_jobs(sweep, jobs);
      out.jobs.push_back(id);
      ids += ":" + id;
    }
    after = ids;
  }
  return out;
}

}  // namespace reel
