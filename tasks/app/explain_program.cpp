#include "tasks/app/explain_program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "backends/cpu/threads/denormals.h"
#include "engine/core/parse.h"
#include "tasks/app/output_file.h"
#include "tasks/app/preset.h"
#include "tasks/app/run.h"
#include "tasks/app/run_folder.h"
#include "tasks/explain/cell.h"
#include "tasks/explain/render.h"
#include "tasks/io/files.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace {

using namespace explain;

constexpr int measured_runs = 20;

/// What is wanted of an explanation. As the value of --explain it is a list with commas between: text, FILE.html,
/// FILE.dot, pass=NAME, forward, measure, rate=GFLOPS.
struct Wanted {
  bool text = true, measure = false, backward = true;
  std::string html = {}, dot = {}, pass = {};
  double rate = 0;  // Gflop/s

  std::string str() const {
    std::vector<std::string> words;
    if (text) words.emplace_back("text");
    if (measure) words.emplace_back("measure");
    if (!backward) words.emplace_back("forward");
    if (!html.empty()) words.push_back(html);
    if (!dot.empty()) words.push_back(dot);
    if (!pass.empty()) words.push_back("pass=" + pass);
    if (rate > 0) words.push_back(fmt::format("rate={}", rate));
    return fmt::format("{}", fmt::join(words, ","));
  }
  StepOptions step() const {
    return {.backward = backward, .measured = measure ? measured_runs : 0, .product_rate = 1e9 * rate};
  }
};

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const LoopPass& pass : loop_passes) names.emplace_back(pass.name);
  return names;
}

/// What --without takes: passes, and two choices of how the loop then runs.
std::vector<std::pair<std::string, bool ScanPasses::*>> pass_switches() {
  std::vector<std::pair<std::string, bool ScanPasses::*>> out;
  for (const LoopPass& pass : loop_passes)
    if (pass.enabled) out.emplace_back(pass.name, pass.enabled);
  out.emplace_back("fuse", &ScanPasses::fuse);
  out.emplace_back("shard_batch", &ScanPasses::shard_batch);
  return out;
}

void check_pass(const std::string& name, const std::string& option) {
  const auto known = pass_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw Usage(fmt::format("{}: one of {} expected, got \"{}\"", option, fmt::join(known, ", "), name));
}

Wanted parse_wanted(const std::string& what) {
  Wanted out{.text = false};
  const auto take = [](std::string& one, const std::string& value, const char* kind) {
    if (!one.empty() && one != value)
      throw Usage(fmt::format("--explain: one {} expected, got {} and {}", kind, one, value));
    one = value;
  };
  for (const std::string& word : split_list(what)) {
    if (word == "text") {
      out.text = true;
    } else if (word == "measure") {
      out.measure = true;
    } else if (word == "forward") {
      out.backward = false;
    } else if (has_ending(word, ".html")) {
      take(out.html, word, "FILE.html");
    } else if (has_ending(word, ".dot")) {
      take(out.dot, word, "FILE.dot");
    } else if (word.starts_with("pass=")) {
      take(out.pass, word.substr(5), "pass=NAME");
      check_pass(out.pass, "--explain pass");
    } else if (const auto rate = parse<double>(word.starts_with("rate=") ? word.substr(5) : ""); rate && *rate > 0) {
      out.rate = *rate;
    } else {
      throw Usage(
          fmt::format("--explain: text, FILE.html, FILE.dot, pass=NAME, forward, measure or rate=GFLOPS expected, "
                      "with commas between, got \"{}\"",
                      word));
    }
  }
  if (out.html.empty() && out.dot.empty()) out.text = true;
  require_output_file("explain", out.html, {});
  require_output_file("explain", out.dot, {});
  return out;
}

void write_explanation(Explanation e, const Wanted& wanted) {
  if (!wanted.backward) std::erase_if(e.loops, [](const LoopReport& loop) { return loop.signature.gradient; });
  if (wanted.text) print_out("{}", text(e, wanted.pass));
  if (!wanted.dot.empty()) {
    write_atomically(wanted.dot, dot(e));
    print_err("graph: {}; to draw it: dot -Tsvg {} -o graph.svg\n", one_line(wanted.dot), shell_path(wanted.dot));
  }
  if (!wanted.html.empty()) {
    write_atomically(wanted.html, html(e));
    print_err("page: {}\n", one_line(wanted.html));
  }
}

/// Measured groups are those of a long run, compiled: not the interpreter's.
void compile_groups() { setenv("REEL_COMPILE", "wait", 0); }

struct ExplainOptions {
  std::vector<std::string> run;
  std::string cell = "srnn", dtype = "f32", device = "cpu", preset, data, html, dot, pass, without;
  std::int64_t input = 0, hidden = 128, batch = 20, length = 200, threads = 1;
  std::uint64_t seed = 1;
  double rate = 0;
  bool backward = false, measure = false;
};

void add_options(Options& options, ExplainOptions& o) {
  options.arguments("[RUN]", o.run);
  options.choice("cell", o.cell, cell_names(), "recurrent cell", "Step");
  options.add("hidden", o.hidden, "hidden size", "Step", Bounds{.low = 1, .high = most::units});
  options.add("input", o.input, "input size; 0: the hidden size", "Step", Bounds{.low = 0, .high = most::units});
  options.add("batch", o.batch, "batch size", "Step", Bounds{.low = 1, .high = most::batch});
  options.add("length", o.length, "number of time steps", "Step", Bounds{.low = 1, .high = most::time});
  options.choice("dtype", o.dtype, {"f32", "f64"}, "data type of parameters and states", "Step");
  options.add("seed", o.seed, "random seed of parameters and inputs", "Step");
  options.add("preset", o.preset, "instead of a cell: a training step of a paper's experiment", "Step");
  options.add("data", o.data, "with a preset or a run: folder of the data sets", "Step");
  options.flag("backward", o.backward, "also explain the backward pass", "Output");
  options.choice("pass", o.pass, pass_names(), "show only this pass", "Output");
  std::vector<std::string> switched;
  for (const auto& [name, enabled] : pass_switches()) switched.emplace_back(name);
  options.list("without", o.without, switched, "disable these passes, comma-separated", "Output");
  options.flag("measure", o.measure, "run it and show the time of each group of ops", "Output");
  options.add("rate", o.rate, "Gflop/s of matrix products, for the bound; 0: measured with --measure", "Output",
              Bounds{.low = 0});
  options.add("html", o.html, "FILE.html to write instead of text: a page with graphs and tables", "Output");
  options.add("dot", o.dot, "FILE.dot to write instead of text: the graph for Graphviz", "Output");
  options.add("threads", o.threads, "CPU threads", "Run", Bounds{.low = 1, .high = 1024});
  add_device(options, o.device);
  options.cells();
}

ScanPasses passes_without(const std::string& names) {
  ScanPasses passes;
  const std::vector<std::string> off = split_list(names);
  for (const auto& [name, enabled] : pass_switches()) passes.*enabled = std::ranges::find(off, name) == off.end();
  return passes;
}

int explain_one_cell(const ExplainOptions& o, const Options& options, const Wanted& wanted) {
  flush_denormals(true);
  if (wanted.measure) compile_groups();
  Backend& real = use_device(o.device);
  real.set_threads(static_cast<int>(o.threads));
  LoopDevice& device = watched(real);
  const CellType& type = cell_type(o.cell);
  std::unique_ptr<Cell> cell;
  try {
    Init init(o.seed, o.dtype == "f64" ? DType::f64 : DType::f32, device);
    const Settings settings(o.cell, type.settings, options.settings(o.cell));
    cell = type.make(o.input > 0 ? o.input : o.hidden, o.hidden, settings, init);
  } catch (const SettingError& e) {
    throw Usage(option_text(e));
  }
  StepOptions step = wanted.step();
  step.batch = o.batch;
  step.length = o.length;
  step.passes = passes_without(o.without);
  write_explanation(explain_cell(device, o.cell, *cell, step), wanted);
  return 0;
}

/// The program of a task and its options, as a preset or a run has them.
std::pair<std::string, std::vector<std::string>> task_of(const ExplainOptions& o) {
  if (!o.preset.empty()) {
    std::vector<std::string> known;
    for (const PresetTable& table : read_presets(presets_folder())) {
      for (const Preset& p : table.presets) {
        if (p.name == o.preset) return {p.task, {"--preset=" + o.preset}};
        known.push_back(p.name);
      }
    }
    throw Usage(fmt::format("--preset {}: there is no such preset{}", o.preset, near_names(o.preset, known)));
  }
  const std::string& run = o.run[0];
  std::error_code error;
  if (!std::filesystem::exists(run, error)) throw Usage(run + ": does not exist");
  if (!std::filesystem::exists(run + "/config.toml", error)) throw Usage(run + ": is not the folder of a run");
  const std::vector<std::string> words{"--config=" + run + "/config.toml"};
  const std::string task = task_in(run);
  if (task.empty()) throw Error(run, "neither model.json nor run.json says which task it is of");
  if (task.find('/') != std::string::npos) throw Error(run, "the task is no name of a program");
  return {task, words};
}

/// The lines of a task's program, as explain's own.
std::string from_explain(std::string_view lines, const std::string& task) {
  std::string out;
  for (std::size_t end; !lines.empty(); lines.remove_prefix(end)) {
    end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    std::string_view line = lines.substr(0, end);
    if (line.starts_with(task + ": ")) {
      out += "explain";
      line.remove_prefix(task.size());
    }
    out += line;
  }
  return out;
}

/// Throws Usage for an option that a run or a preset has of its own, such as a setting of its cell.
void reject_own_options(const ExplainOptions& o, const Options& options) {
  constexpr const char* beside[] = {"data", "backward", "pass", "measure", "rate", "html", "dot", "threads", "device"};
  std::vector<std::string> own{"cell", "hidden", "input", "batch", "length", "dtype", "seed", "without"};
  for (const CellType& type : cell_registry())
    for (const Setting& setting : type.settings) own.push_back(type.name + "." + setting.name);
  for (const std::string& name : own)
    if (options.given(name))
      throw Usage(fmt::format("--{}: a {} has its own; with it only --{} may be given", name,
                              o.preset.empty() ? "run" : "preset", fmt::join(beside, ", --")));
}

/// A training step: the program of the task makes model and batch, and explains them.
int explain_task(const ExplainOptions& o, const Options& options, const Wanted& wanted) {
  reject_own_options(o, options);
  const auto [task, words] = task_of(o);
  std::error_code error;
  const std::string program = (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / task).string();
  std::vector<std::string> arguments{program};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back("--explain=" + wanted.str());
  arguments.push_back(fmt::format("--threads={}", o.threads));
  if (options.given("device")) arguments.push_back("--device=" + o.device);
  if (!o.data.empty()) arguments.push_back("--data=" + o.data);
  const Spawned child = run_child(arguments);
  if (child.code == could_not_start)
    throw Error(program,
                fmt::format("could not be started. Hint: a program of your own has --explain text for its runs: "
                            "{} --config RUN/config.toml --explain text",
                            task));
  write_out(child.out);
  write_err(from_explain(child.err, task));
  // nobody typed what the run's own file says
  const bool damaged = !o.run.empty() && child.err.find(o.run[0] + "/config.toml") != std::string::npos;
  return damaged && child.code == 2 ? 1 : child.code;
}

int explain_program(int argc, const char* const* argv) {
  ExplainOptions o;
  Options options("explain",
                  "Explains how a step runs: the loop after each pass, what it saves, computes, reads and writes, and "
                  "its kernels.");
  add_options(options, o);
  options.parse(argc, argv);
  for (const auto& [name, value, end] : {std::tuple{"html", o.html, ".html"}, std::tuple{"dot", o.dot, ".dot"}}) {
    if (options.given(name) && (!has_ending(value, end) || value.find(',') != std::string::npos))
      throw Usage(fmt::format("--{} {}: a name without commas that ends with {} expected", name, value, end));
  }
  if (!o.pass.empty() && !(o.html.empty() && o.dot.empty()))
    throw Usage(fmt::format("--pass {}: a page or graph has all passes; only the text can show one", o.pass));
  if (const auto off = split_list(o.without); std::find(off.begin(), off.end(), o.pass) != off.end())
    throw Usage(fmt::format("--pass {}: --without disables it", o.pass));
  require_output_file("html", o.html, {});
  require_output_file("dot", o.dot, {});
  if (o.run.size() > 1) throw Usage(fmt::format("one RUN expected, got {}", o.run.size()));
  if (!o.run.empty() && !o.preset.empty()) throw Usage("a RUN or --preset expected, got both");
  const Wanted wanted{.text = o.html.empty() && o.dot.empty(),
                      .measure = o.measure,
                      .backward = o.backward,
                      .html = o.html,
                      .dot = o.dot,
                      .pass = o.pass,
                      .rate = o.rate};
  if (!o.run.empty() || !o.preset.empty()) return explain_task(o, options, wanted);
  if (!o.data.empty()) throw Usage("--data: goes with a RUN or --preset");
  return explain_one_cell(o, options, wanted);
}

}  // namespace

int run_explain(int argc, const char* const* argv) {
  return run_program("explain", [&] { return explain_program(argc, argv); });
}

Backend& device_to_explain(const std::string& what, Backend& device) {
  if (parse_wanted(what).measure) compile_groups();
  return watched(device);
}

int explain_training_step(const std::string& what, const std::string& title, const Model& model, Backend& device,
                          const std::function<void()>& step) {
  const Wanted wanted = parse_wanted(what);
  auto& loops = dynamic_cast<LoopDevice&>(device);
  write_explanation(explain_training(loops, title, model.parameters(), wanted.step(), step), wanted);
  return 0;
}

}  // namespace reel
