// Many runs of a task: a grid of options or random search, with seeds, on this machine, by Slurm or by GNU parallel.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "backends/cpu/threads/cores.h"
#include "tasks/app/run.h"
#include "tasks/runner/program.h"
#include "tasks/sweep/cost.h"
#include "tasks/sweep/engines.h"
#include "tasks/sweep/results.h"
#include "tasks/sweep/start.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_rows = 40;  // on the terminal

/// Prints the table and writes the files; returns the exit code, 1 if a run failed, or if some are left over that
/// should be done.
int report(const Sweep& sweep, const Untold& untold = {}, std::size_t left = 0) {
  const Results results = gather(sweep, untold);
  print_out("{}{}\n", results_text(sweep, results, most_rows), text_of(results.counts));
  const std::string problem = write_results(sweep, results);
  if (!problem.empty()) print_err("{}\n", one_line(problem));
  print_out("results: {0}/results.csv, {0}/results.md, {0}/report.html\n", one_line(sweep.folder));
  if (left > 0) print_err("sweep: {} left over; the same command goes on\n", runs_text(left));
  const auto failed = [](const ResultRow& row) { return !row.problems.empty(); };
  const bool bad = std::any_of(results.rows.begin(), results.rows.end(), failed) || results.counts.failed > 0;
  return bad || left > 0 ? 1 : 0;
}

std::vector<std::size_t> all_runs(const Sweep& sweep) {
  std::vector<std::size_t> all(sweep.runs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// All runs that are free, one after the other; those that failed in an earlier call are tried again.
int work_on_all(const Sweep& sweep) {
  tidy(sweep);
  Work job(sweep, all_runs(sweep));
  job.help();
  if (job.interrupted()) return Interrupt::exit_code;
  int code = 0;
  const std::vector<RunState> states = read_states(sweep, job.untold());
  for (std::size_t at = 0; at < states.size(); ++at)
    if (!states[at].problem.empty()) {
      print_err("sweep: [{}] {}\n", sweep.runs[at].name, one_line(states[at].problem));
      code = 1;
    }
  return code;
}

/// One run, in a job of Slurm or GNU parallel.
int work(const Sweep& sweep, std::int64_t number) {
  if (number > static_cast<std::int64_t>(sweep.runs.size()))
    throw Usage(fmt::format("--worker {}: {} has {}", number, sweep.folder, runs_text(sweep.runs.size())));
  Work job(sweep, all_runs(sweep));
  const auto at = static_cast<std::size_t>(number - 1);
  const std::string& name = sweep.runs[at].name;
  const auto result = job.do_run(at);
  using End = Attempted::End;
  if (!result || result->end == End::kept) {
    print_out("{}: there is nothing to do\n", name);
    return 0;
  }
  if (result->end == End::done) print_out("{}: done in {:.1f} s\n", name, result->seconds);
  if (result->end == End::taken) print_out("{}\n", one_line(result->problem));
  if (result->end == End::interrupted) return Interrupt::exit_code;
  if (result->end == End::failed) throw Error(name, result->problem);
  return 0;
}

/// The runs to do in this call: all, or with --hours, which began at `start`, the cheapest that fit after measuring.
std::vector<std::size_t> runs_to_do(const Sweep& sweep, double hours, Work::Clock::time_point start, std::size_t jobs,
                                    Monitor& monitor) {
  const std::vector<RunState> states = read_states(sweep);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i)
    if (!states[i].has(sweep.of(sweep.runs[i]).updates)) order.push_back(i);
  if (hours <= 0) return order;
  std::erase_if(order, [&](std::size_t i) { return !states[i].problem.empty(); });  // they are not tried again
  if (order.empty()) return order;
  const Interrupt interrupt;
  LiveLine live;
  std::vector<double> costs;
  try {
    costs = run_costs(sweep, order, [&](std::size_t left) {
      live.show(fmt::format("measuring what an update costs, {} combinations left", left));
      return interrupt.requested();
    });
  } catch (const Error&) {
    if (interrupt.requested()) throw Exit{Interrupt::exit_code, ""};
    throw;
  }
  live.clear();
  std::vector<double> left;
  for (const std::size_t i : order) left.push_back(cost_left(sweep, sweep.runs[i], costs[sweep.runs[i].at]));
  const double seconds = hours * 3600 - std::chrono::duration<double>(Work::Clock::now() - start).count();
  const Schedule all = affordable(order, left, jobs, INFINITY),
                 chosen = affordable(order, left, jobs, std::max(0.0, seconds));
  monitor.say(fmt::format("{} would take {:.3g} hours, {} at a time; {} fit into {:g}", runs_text(order.size()),
                          all.seconds / 3600, jobs, chosen.runs.size(), hours));
  return chosen.runs;
}

int run_sweep(const Sweep& sweep, const EngineOptions& engine, double hours) {
  const std::size_t cores = static_cast<std::size_t>(std::max(1, available_cores()));
  const std::size_t jobs = engine.jobs > 0 ? static_cast<std::size_t>(engine.jobs)
                                           : std::max<std::size_t>(1, cores / static_cast<std::size_t>(sweep.threads));
  const auto start = Work::Clock::now();
  tidy(sweep);
  Monitor monitor(sweep, read_states(sweep));
  const std::vector<std::size_t> order = runs_to_do(sweep, hours, start, jobs, monitor);
  if (engine.kind == "slurm") {
    const Submitted submitted = submit_slurm(sweep, order, engine);
    if (submitted.queued == 0 && submitted.jobs.empty()) return report(sweep);
    if (submitted.queued > 0) print_out("{} queued already\n", runs_text(submitted.queued));
    if (!submitted.jobs.empty())
      print_out("{} submitted, job{} {}\n", runs_text(submitted.runs), submitted.jobs.size() > 1 ? "s" : "",
                fmt::join(submitted.jobs, ", "));
    print_out("results so far: sweep {} --gather\n", shell_path(sweep.folder));
    return 0;
  }
  std::optional<Work::Clock::time_point> end;
  if (hours > 0)
    end = start +
          std::chrono::duration_cast<Work::Clock::duration>(std::chrono::duration<double, std::ratio<3600>>(hours));
  bool interrupted = false, stopped = false;
  Untold untold;
  {
    Work here(sweep, order, end);
    if (engine.kind == "parallel")
      run_parallel(sweep, here, order, engine, monitor);
    else
      run_local(sweep, here, jobs, monitor);
    interrupted = here.interrupted();
    stopped = here.stopping();
    untold = here.untold();
  }
  const std::size_t left = stopped || hours > 0 ? 0 : count(sweep, read_states(sweep, untold)).left;
  const int code = report(read_sweep(sweep.folder), untold, left);  // with the runs of calls that have extended it
  if (interrupted) {
    print_err("interrupted; to go on: sweep {}\n", shell_path(sweep.folder));
    return Interrupt::exit_code;
  }
  if (stopped) print_err("stopped at the end of --hours; to go on: sweep {}\n", shell_path(sweep.folder));
  return code;
}

int main_of(int argc, const char* const* argv) {
  SweepOptions o;
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> task_options(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  Options options("sweep",
                  "Runs a task many times. NAME is a task, a preset, a table of presets, or a sweep folder.\n"
                  "Options of the task for all runs follow at the end, after --.");
  add_options(options, o);
  options.parse(static_cast<int>(dashes - arguments.begin()), argv);
  if (o.names.size() != 1)
    throw Usage(
        fmt::format("one NAME of a task, a preset or a sweep's folder expected, got {}. See --help.", o.names.size()));

  Sweep sweep = open_or_define(o, options, task_options);
  if (o.dry_run) {
    print_out("{}", listing(sweep));
    if (o.engine.kind == "slurm") print_out("{}", script_of_all(sweep, o.engine));
    return 0;
  }
  std::error_code error;
  fs::current_path(sweep.where, error);  // if it is gone, only relative paths in options suffer
  if (o.gather) return report(sweep);
  if (options.given("worker")) return o.worker == 0 ? work_on_all(sweep) : work(sweep, o.worker);
  return run_sweep(sweep, o.engine, o.hours);
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("sweep", [&] { return reel::main_of(argc, argv); });
}
