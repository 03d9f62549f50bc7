#include "tasks/sweep/start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "backends/cpu/threads/cores.h"
#include "tasks/app/curves.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/option.h"
#include "tasks/app/preset.h"
#include "tasks/io/lock.h"
#include "tasks/io/output.h"
#include "tasks/runner/live_line.h"
#include "tasks/runner/program.h"
#include "tasks/sweep/results.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes others{10};  // for another call that defines the same sweep

/// The options that the sweep sets, with what to give instead.
const std::vector<std::pair<std::string, std::string>>& own_options() {
  static const std::vector<std::pair<std::string, std::string>> all{{"seed", "sweep's --seeds N"},
                                                                    {"out", "sweep's --out DIR"},
                                                                    {"resume", "sweep DIR goes on"},
                                                                    {"threads", "sweep's --threads N"},
                                                                    {"stop-below", "sweep's --stop-below X"},
                                                                    {"dry-run", "sweep's --dry-run"},
                                                                    {"quiet", "runs write into their folders"},
                                                                    {"explain", ""},
                                                                    {"list-cells", ""},
                                                                    {"list-presets", ""},
                                                                    {"help", ""},
                                                                    {"h", ""},
                                                                    {"help-all", ""},
                                                                    {"version", ""}};
  return all;
}

/// The option that a word of a command line names; empty if it names none.
std::string option_in(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return word.starts_with("-") ? name.substr(std::min(name.find_first_not_of('-'), name.size())) : "";
}

/// Throws Usage if the option cannot be one of a sweep's runs.
void check_option(const std::string& name) {
  for (const auto& [own, instead] : own_options())
    if (name == own)
      throw Usage(instead.empty() ? fmt::format("--{}: is for the task alone, as it trains nothing", name)
                                  : fmt::format("--{}: is set by the sweep itself. Hint: {}", name, instead));
}

std::vector<std::string> names_of_tasks() {
  return {"adding", "babi", "charlm", "copying", "denoising", "mnist", "music", "paths", "speech", "table"};
}

/// Fills in the task, and the presets as an option or an axis.
void take_name(Sweep& sweep, std::vector<Axis>& axes, const std::string& name) {
  if (name == "mechanism") throw Usage("mechanism: trains nothing, so there are no runs to sweep");
  const std::vector<std::string> tasks = names_of_tasks();
  const bool known = std::find(tasks.begin(), tasks.end(), name) != tasks.end();
  if (is_program(name)) {
    sweep.task = name;
    return;
  }
  if (known) throw Error(program_of(name), "is not there. Hint: build it beside sweep");
  std::error_code error;
  if (fs::is_directory(name, error)) throw Usage(fmt::format("{}: holds no sweep.json", name));
  if (name.find('/') == std::string::npos)
    throw Usage(fmt::format("{}: is no task, preset or folder of a sweep{}", name, nearest_hint(name, tasks)));
  std::vector<std::string> names;
  const bool of_preset = std::count(name.begin(), name.end(), '/') > 1;
  for (const PresetTable& table : read_presets(presets_folder())) {
    if (!of_preset) names.push_back(table.name);
    for (const Preset& p : table.presets) {
      if (of_preset) names.push_back(p.name);
      if (p.name == name) {
        sweep.task = p.task;
        sweep.fixed.insert(sweep.fixed.begin(), {"--preset", name});
        return;
      }
      if (table.name != name) continue;
      if (!sweep.task.empty() && sweep.task != p.task)
        throw Usage(fmt::format("{}: has presets of {} and {}. Hint: a preset of it, or reproduce {}", name, sweep.task,
                                p.task, name));
      sweep.task = p.task;
      if (axes.empty() || axes.front().option != "preset") axes.insert(axes.begin(), Axis{"preset"});
      axes.front().values.push_back(p.name);
    }
    if (table.name == name) return;
  }
  throw Usage(fmt::format("{}: is no task, preset or folder of a sweep{}", name, near_names(name, names)));
}

/// Throws Usage for settings of a search that is not asked for.
void check_search(const SweepOptions& o, const Options& options) {
  if (o.halving == 0 && options.given("rungs")) throw Usage("--rungs: is one of --halving. Hint: --halving 3");
  if (o.sample == 0 && options.given("sample-seed")) throw Usage("--sample-seed: is one of --sample. Hint: --sample N");
}

/// Throws Usage for settings that do not go together.
void check_together(std::int64_t halving, const std::string& metric, double hours) {
  if (metric.empty()) throw Usage("--metric: a name expected. Hint: --metric valid_loss");
  if (halving == 1) throw Usage("--halving: 2 or more expected, got 1. Hint: --halving 3 keeps the best third");
  if (halving > 0 && hours > 0) throw Usage("--hours: does not go with --halving, which makes its own choice");
  const auto& columns = curve_metrics();
  if (halving > 0 && std::find(columns.begin(), columns.end(), metric) == columns.end())
    throw Usage(fmt::format("--metric {}: --halving ranks runs by what is in metrics.csv: {}", metric,
                            fmt::join(columns, ", ")));
}

Sweep define(const SweepOptions& o, const std::vector<std::string>& task_options) {
  check_together(o.halving, o.metric, o.hours);
  if (o.sample > 0 && o.grid.empty())
    throw Usage("--sample: --grid with ranges expected. Hint: --grid \"lr=log(1e-4,1e-1)\"");
  Sweep s;
  std::vector<Axis> axes = parse_grid(o.grid);
  for (const std::string& word : task_options) check_option(option_in(word));
  for (const Axis& axis : axes) {
    check_option(axis.option);
    if (std::ranges::find(task_options, axis.option, option_in) != task_options.end())
      print_err("sweep: --{}: --grid has it, too, and its values count\n", axis.option);
  }
  s.fixed = task_options;
  take_name(s, axes, o.names[0]);
  if (o.out.empty()) throw Usage("--out DIR expected: the folder of the sweep, new or of an earlier call");
  if (o.out.find('\n') != std::string::npos) throw Usage("--out: a name without line breaks expected");
  std::error_code error;
  s.folder = fs::absolute(o.out, error).lexically_normal().string();
  while (s.folder.size() > 1 && s.folder.ends_with('/')) s.folder.pop_back();
  s.where = fs::current_path(error).string();
  s.stop_below = o.stop_below;
  s.halving = o.halving;
  s.rungs = o.rungs;
  const std::vector<Point> points = o.sample > 0 ? drawn_points(axes, o.sample, o.sample_seed) : all_points(axes);
  if (std::ssize(points) < o.sample)
    print_err("sweep: --sample {}: {} draws are equal to others; there {} {} combination{}\n", o.sample,
              o.sample - std::ssize(points), points.size() == 1 ? "is" : "are", points.size(),
              points.size() == 1 ? "" : "s");
  add_runs(s, points, o.seeds);
  return s;
}

/// Makes the folder and keeps other calls from defining a sweep in it, for the lifetime of this object; a folder that
/// is empty at the end goes.
class Defining {
 public:
  explicit Defining(const std::string& folder) : folder_(folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw Error(folder, "cannot be made: " + error.message());
    lock_ = std::make_unique<LockedFile>(file(), folder, others);
  }
  ~Defining() {
    std::error_code error;
    fs::remove(file(), error);
    fs::remove(folder_, error);  // fails if there is something in it
  }
  Defining(const Defining&) = delete;
  Defining& operator=(const Defining&) = delete;

 private:
  std::string file() const { return folder_ + "/sweep.lock"; }

  std::string folder_;
  std::unique_ptr<LockedFile> lock_;
};

/// What the results are compared by; what was best of one metric says nothing of another one.
void take_metric(Sweep& sweep, const SweepOptions& o, const Options& options) {
  const bool other = options.given("metric") && o.metric != sweep.metric;
  if (other) sweep.metric = o.metric;
  if (other || options.given("best")) sweep.best = o.best;
}

/// The settings that any call may change.
void take_settings(Sweep& sweep, const SweepOptions& o, const Options& options) {
  take_metric(sweep, o, options);
  if (options.given("threads")) sweep.threads = o.threads;
}

/// The engine of the last call, unless this one names another.
void take_engine(Sweep& sweep, SweepOptions& o, const Options& options) {
  const char* const mine[] = {"engine", "jobs", "partition", "time", "gpus", "account", "sbatch", "sshlogin"};
  const bool given =
      std::any_of(std::begin(mine), std::end(mine), [&](const char* name) { return options.given(name); });
  if (given || sweep.engine.empty()) {
    const bool slurm = o.engine.kind == "slurm";
    for (const char* name : {"partition", "time", "gpus", "account", "sbatch"})
      if (options.given(name) && !slurm) throw Usage(fmt::format("--{}: is one of --engine slurm", name));
    if (options.given("sshlogin") && o.engine.kind != "parallel")
      throw Usage("--sshlogin: is one of --engine parallel");
    sweep.engine = to_json(o.engine);
  } else {
    o.engine = engine_from_json(sweep.engine);
  }
}

}  // namespace

void add_options(Options& options, SweepOptions& o) {
  options.arguments("NAME", o.names);
  options.add("out", o.out, "sweep folder; an existing one is continued, or extended by more values and seeds",
              "Sweep");
  options.add("grid", o.grid, "grid of options and values: \"cell=lstm,srnn lr=1e-2,1e-3\"", "Sweep");
  options.add("seeds", o.seeds, "runs per combination, with seeds 1, 2, ...", "Sweep", Bounds{.low = 1, .high = 1000});
  options.add(
      "sample", o.sample,
      "random search: N random combinations instead of the whole grid; ranges are uniform(a,b), log(a,b) or int(a,b)",
      "Sweep", Bounds{.low = 0, .high = 1e4});
  options.add("sample-seed", o.sample_seed, "random seed of --sample", "Sweep");
  options.add("metric", o.metric, "metric to compare, a number in run.json: valid_loss, accuracy, test.loss, ...",
              "Sweep");
  options.choice("best", o.best, {"auto", "lowest", "highest"},
                 "which value of the metric is best; auto: highest accuracy, lowest loss", "Sweep");
  options.flag("dry-run", o.dry_run, "check and print all combinations and exit", "Sweep");

  options.add("stop-below", o.stop_below, "stop a run when its validation loss is below this; 0: never", "Budget",
              Bounds{.low = 0});
  options.add(
      "halving", o.halving,
      "successive halving; 3: all runs do a ninth of the updates, the best third a third, the best ninth all; 0: off",
      "Budget", Bounds{.low = 0, .high = 100});
  options.add("rungs", o.rungs, "successive halving: how often runs are dropped", "Budget",
              Bounds{.low = 1, .high = 20});
  options.add("hours", o.hours, "time budget in hours: do the runs that fit, cheapest first; 0: do all", "Budget",
              Bounds{.low = 0, .high = 1e5});

  options.choice("engine", o.engine.kind, {"local", "slurm", "parallel"},
                 "where to run: locally, as Slurm jobs, or by GNU parallel", "Engine");
  options.add("jobs", o.engine.jobs, "concurrent runs; 0: local and parallel: as cores allow, slurm: as it allows",
              "Engine", Bounds{.low = 0, .high = 1e4});
  options.add("threads", o.threads, "CPU threads per run", "Engine", Bounds{.low = 1, .high = 1024});
  options.add("partition", o.engine.partition, "slurm: partition", "Engine");
  options.add("time", o.engine.time,
              "slurm: time limit per run, e.g. 2:00:00; a run that needs more continues in the next call", "Engine");
  options.add("gpus", o.engine.gpus, "slurm: GPUs per run, e.g. 1 or a100:1; the task also needs --device cuda",
              "Engine");
  options.add("account", o.engine.account, "slurm: account", "Engine");
  options.add("sbatch", o.engine.sbatch, "slurm: further sbatch options, without dashes: \"mem=2G qos=low\"", "Engine");
  options.add("sshlogin", o.engine.sshlogin, "parallel: hosts that share the folder, e.g. 4/ada,8/bob", "Engine");
  options.flag("gather", o.gather, "only print and write the results so far", "Engine");
  options.add("worker", o.worker, "do run N and exit, as jobs do; 0: all unclaimed runs, one by one", "Engine",
              Bounds{.low = 0, .high = 1e6});
  options.hint("resume", "sweep DIR goes on where it stopped");
  options.hint("seed", "--seeds N runs seeds 1 to N");
  for (const char* name : {"cell", "lr", "hidden", "steps", "device", "data", "batch"})
    options.hint(name, fmt::format("options of the task stand behind --, as in: sweep TASK ... -- --{} X", name));
}

namespace {

/// The sweep in the folder that the call names, with what the call changes.
Sweep open_sweep(SweepOptions& o, const Options& options, const std::vector<std::string>& task_options) {
  const std::string& name = o.names[0];
  for (const char* option : {"out", "grid", "seeds", "sample", "sample-seed", "stop-below", "halving", "rungs"})
    if (options.given(option))
      throw Usage(fmt::format(
          "--{}: {} has what it was defined with. Hint: the first command with more values extends it", option, name));
  if (!task_options.empty()) throw Usage(fmt::format("{}: {} has its options of the task", task_options[0], name));
  Sweep sweep = read_sweep(name);
  if (o.gather || options.given("worker")) {
    take_metric(sweep, o, options);
    if (options.given("metric")) check_together(sweep.halving, sweep.metric, 0);
    if (o.gather && options.given("metric")) require_metric(sweep);
    return sweep;
  }
  const std::string before = sweep.metric;
  take_settings(sweep, o, options);
  take_engine(sweep, o, options);
  check_together(sweep.halving, sweep.metric, o.hours);
  if (options.given("metric")) require_metric(sweep);
  if (sweep.halving > 0 && sweep.metric != before)
    print_err("sweep: --metric {0} now chooses the runs that go on, instead of {1}. Hint: --gather for a table alone\n",
              sweep.metric, before);
  if (!o.dry_run) write_sweep(sweep);
  return sweep;
}

/// A new sweep of the task that the call names, or the one in --out, extended.
Sweep define_or_extend(SweepOptions& o, const Options& options, const std::vector<std::string>& task_options) {
  check_search(o, options);
  Sweep sweep = define(o, task_options);
  std::unique_ptr<Defining> defining;
  if (!o.dry_run) defining = std::make_unique<Defining>(sweep.folder);
  take_settings(sweep, o, options);
  sweep.engine.clear();
  take_engine(sweep, o, options);
  if (holds_sweep(sweep.folder)) sweep = extended(read_sweep(sweep.folder), sweep);
  if (options.given("metric")) require_metric(sweep);
  if (sweep.halving > 0) sweep.has_epochs = has_epochs(sweep.task);
  const Interrupt interrupt;
  LiveLine live;
  const auto cores = static_cast<std::size_t>(std::max(1, available_cores()));
  std::vector<std::string> notes;
  try {
    notes = check_combinations(sweep, cores, [&](std::size_t left) {
      live.show(fmt::format("checking combinations, {} left", left));
      return interrupt.requested();
    });
  } catch (const Error&) {
    if (interrupt.requested()) throw Exit{Interrupt::exit_code, ""};
    throw;
  }
  live.clear();
  for (const std::string& note : notes) print_err("sweep: {}\n", one_line(note));
  if (!o.dry_run) write_sweep(sweep);
  return sweep;
}

}  // namespace

Sweep open_or_define(SweepOptions& o, const Options& options, const std::vector<std::string>& task_options) {
  const std::string& name = o.names[0];
  if (!is_program(name) && holds_sweep(name)) return open_sweep(o, options, task_options);
  if (o.gather || options.given("worker"))
    throw Usage(fmt::format("{}: the folder of a sweep expected. Hint: sweep DIR --{}", name,
                            o.gather ? "gather" : "worker N"));
  return define_or_extend(o, options, task_options);
}

std::string listing(const Sweep& sweep) {
  std::string out;
  for (const Combination& c : sweep.combinations)
    out += fmt::format("{}  {} updates\n", c.point.empty() ? sweep.task : text_of(c.point), c.updates);
  return out + fmt::format("{} of {} combination{}\n", runs_text(sweep.runs.size()), sweep.combinations.size(),
                           sweep.combinations.size() == 1 ? "" : "s");
}

std::string script_of_all(const Sweep& sweep, const EngineOptions& engine) {
  std::vector<std::size_t> runs(std::min<std::size_t>(sweep.runs.size(), 1000));
  std::iota(runs.begin(), runs.end(), std::size_t{0});
  return slurm_script(sweep, engine, runs, 0);
}

}  // namespace reel
