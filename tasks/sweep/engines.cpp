#include "tasks/sweep/engines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/core/error.h"
#include "tasks/io/output.h"
#include "tasks/io/spawn.h"
#include "tasks/runner/program.h"

namespace reel {

namespace {

/// The texts of the options, by their names.
std::vector<std::pair<const char*, std::string*>> texts(EngineOptions& o) {
  return {{"kind", &o.kind},       {"partition", &o.partition}, {"time", &o.time},        {"gpus", &o.gpus},
          {"account", &o.account}, {"sbatch", &o.sbatch},       {"sshlogin", &o.sshlogin}};
}

/// The runs of `order` that have something left to do, with the updates they are to have.
std::vector<std::pair<std::size_t, std::int64_t>> unfinished(const Sweep& sweep, const std::vector<std::size_t>& order,
                                                             const std::vector<RunState>& states) {
  const Wanted goal = wanted(sweep, states);
  std::vector<std::pair<std::size_t, std::int64_t>> out;
  for (const std::size_t at : order)
    if (states[at].problem.empty() && !states[at].has(goal.updates[at])) out.emplace_back(at, goal.updates[at]);
  return out;
}

}  // namespace

std::string to_json(const EngineOptions& options) {
  EngineOptions copy = options;
  nlohmann::ordered_json json{{"jobs", options.jobs}};
  for (const auto& [name, text] : texts(copy)) json[name] = *text;
  return json.dump();
}

EngineOptions engine_from_json(const std::string& text) try {
  EngineOptions o;
  const auto json = nlohmann::json::parse(text);
  if (json.contains("jobs")) json.at("jobs").get_to(o.jobs);
  for (const auto& [name, value] : texts(o))
    if (json.contains(name)) json.at(name).get_to(*value);
  return o;
} catch (const nlohmann::json::exception& e) {
  throw Error("sweep.json", fmt::format("is damaged: engine: {}", one_line(e.what())));
}

std::string worker_command(const Sweep& sweep) {
  return fmt::format("{} {} --worker", shell_path(program_of("sweep")), shell_path(sweep.folder));
}

void run_local(const Sweep& sweep, Work& work, std::size_t jobs, Monitor& monitor) {
  std::atomic<std::size_t> working = std::min(jobs, sweep.runs.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = working; i > 0; --i)
    threads.emplace_back([&] {
      try {
        work.help();
      } catch (const std::exception& e) {  // of what is read, at most: the others go on
        write_err(fmt::format("sweep: {}\n", one_line(e.what())));
      }
      --working;
    });
  while (working > 0) {
    monitor.show(work.states());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void run_parallel(const Sweep& sweep, Work& work, const std::vector<std::size_t>& order, const EngineOptions& options,
                  Monitor& monitor) {
  std::vector<std::string> command{"parallel", "--termseq", "TERM,60000,KILL,25"};  // time to save
  if (options.jobs > 0) command.insert(command.end(), {"--jobs", fmt::format("{}", options.jobs)});
  if (!options.sshlogin.empty()) command.insert(command.end(), {"--sshlogin", options.sshlogin});
  command.push_back(worker_command(sweep) + " {}");
  std::vector<std::pair<std::size_t, std::int64_t>> before;
  while (!work.stopping()) {
    const auto runs = unfinished(sweep, order, read_states(sweep));
    if (runs.empty() || runs == before) return;  // what is left, other workers have, or cannot be had
    std::string input;
    for (const auto& [at, updates] : runs) input += fmt::format("{}\n", at + 1);
    const auto stop = [&] {
      monitor.show(work.states());
      return work.stopping();
    };
    // The first SIGTERM keeps it from starting more, the second one reaches those that run.
    const Spawned ran = run_child(command, input, stop, 2);
    if (ran.code == could_not_start)
      throw Error("--engine parallel", "GNU parallel " + ran.problem + ". Hint: install the package parallel");
    if (ran.code == 255 && !work.stopping()) throw Error("--engine parallel", one_line(last_line(ran.err)));
    before = runs;
  }
}

}  // namespace reel
