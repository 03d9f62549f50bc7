// Reruns a table or figure of a paper: starts the task programs on its presets, and prints the reported values next to
// the measured ones.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "tasks/app/interrupt.h"
#include "tasks/app/run.h"
#include "tasks/io/lock.h"
#include "tasks/runner/live_line.h"
#include "tasks/runner/pool.h"
#include "tasks/runner/report.h"

namespace reel {
namespace {

struct ReproduceOptions {
  std::vector<std::string> names;
  bool list = false;
  double budget = 1;
  std::string cells, cases, data, device, runs = "runs/reproduce", results = "results";
  std::int64_t seeds = 1, threads = 0, jobs = 1;
};

void print_list(const std::vector<PresetTable>& tables) {
  for (const PresetTable& t : tables)
    print_out("{:<22} {:>3} presets  {} - {}, {}\n", t.name, t.presets.size(), t.title, t.paper, t.where);
}

/// The cell that a preset's options choose.
std::string cell_of(const Preset& p) {
  const auto at = std::find(p.options.rbegin(), p.options.rend(), "--cell");
  return at == p.options.rend() || at == p.options.rbegin() ? "" : *(at - 1);
}

/// Keeps the presets of a table that --cells and --cases select; throws Usage for a name that no preset has.
void choose(PresetTable& table, const ReproduceOptions& o) {
  const auto keep = [&](const std::string& option, const std::vector<std::string>& wanted, const auto& names_of) {
    if (wanted.empty()) return;
    std::vector<std::string> known;
    for (const Preset& p : table.presets)
      for (const std::string& name : names_of(p))
        if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    for (const std::string& name : wanted)
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw Usage(fmt::format("--{}: {} is not in {}{}", option, name, table.name, near_names(name, known)));
    std::erase_if(table.presets, [&](const Preset& p) {
      const auto names = names_of(p);
      return std::none_of(names.begin(), names.end(), [&](const std::string& name) {
        return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
      });
    });
  };
  keep("cells", split_list(o.cells), [](const Preset& p) { return std::vector<std::string>{p.model, cell_of(p)}; });
  keep("cases", split_list(o.cases), [](const Preset& p) { return std::vector<std::string>{p.in_case}; });
  if (table.presets.empty()) throw Usage(fmt::format("--cells, --cases: nothing of {} is left", table.name));
}

/// The name for the results of part of a table, so that they do not overwrite those of the whole.
std::string part_name(const std::string& table, const ReproduceOptions& o) {
  std::string name = table;
  for (const std::string& part : {o.cases, o.cells})
    if (!part.empty()) name += "-" + fmt::format("{}", fmt::join(split_list(part), "+"));
  return name;
}

/// The table of this name; given a preset's name, its table with only that preset.
PresetTable find_table(const std::vector<PresetTable>& tables, const std::string& name) {
  std::vector<std::string> known;
  for (PresetTable table : tables) {
    if (table.name == name) return table;
    known.push_back(table.name);
    const auto preset =
        std::find_if(table.presets.begin(), table.presets.end(), [&](const Preset& p) { return p.name == name; });
    if (preset == table.presets.end()) continue;
    table.presets = {Preset(*preset)};
    table.name = name;
    return table;
  }
  throw Usage(fmt::format("{}: there is no such table or figure{}. See --list.", name, near_names(name, known)));
}

/// Runs all presets with all seeds, some at a time, and prints each row as soon as it and those above it are complete.
void run_rows(Report& report, const ReproduceOptions& o, std::size_t width, const Interrupt& interrupt) {
  std::mutex mutex;  // of the lines, and of what is printed
  LiveLine live;
  const auto seeds = static_cast<std::size_t>(o.seeds);
  std::vector<std::vector<PresetRun>> runs(report.rows.size(), std::vector<PresetRun>(seeds));
  std::vector<std::size_t> left(report.rows.size(), seeds);
  std::size_t printed = 0, running = 0;
  const auto print_complete = [&](bool all) {
    for (; printed < left.size() && (all || left[printed] == 0); ++printed) {
      ReportRow& row = report.rows[printed];
      for (PresetRun& run : runs[printed])
        if (!run.folder.empty() || !run.done()) row.runs.push_back(std::move(run));
      if (row.runs.empty()) continue;  // interrupted before it began
      live.clear();
      print_out("{}", report_line(row, width));
      flush_out();
    }
  };
  in_parallel(runs.size() * seeds, static_cast<std::size_t>(o.jobs), [&](std::size_t i) {
    if (interrupt.requested()) return;
    const std::size_t at = i / seeds, seed = i % seeds + 1;
    const Preset& preset = report.rows[at].preset;
    const PresetRunOptions how{o.budget, seed, o.data, o.device, o.threads, o.runs};
    {
      const std::lock_guard lock(mutex);
      ++running;
    }
    PresetRun run = run_preset(preset, how, [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      const std::string others = running > 1 ? fmt::format("{} running: ", running) : "";
      live.show(fmt::format("{}{}, seed {}: {}", others, preset.label, seed, line));
      return interrupt.requested();
    });
    const std::lock_guard lock(mutex);
    --running;
    --left[at];
    runs[at][seed - 1] = std::move(run);
    print_complete(false);
  });
  print_complete(true);
}

int reproduce(int argc, const char* const* argv) {
  ReproduceOptions o;
  Options options("reproduce", "Tables and figures of papers, measured anew beside what was reported.");
  options.arguments("NAME", o.names);
  options.flag("list", o.list, "print all tables and figures and stop", "What");
  options.add("cells", o.cells, "these models or cells of the table only, with commas between", "What");
  options.add("cases", o.cases, "these cases of the table only, with commas between", "What");
  options.add("budget", o.budget, "the share of the paper's updates that is done, 20 updates at least", "Run",
              Bounds{.low = 1e-9, .high = 1000});
  options.add("seeds", o.seeds, "how many runs of each, with seeds 1, 2, ...", "Run", Bounds{.low = 1, .high = 1000});
  options.add("jobs", o.jobs, "how many runs at a time; with several, --threads 1 is often best", "Run",
              Bounds{.low = 1, .high = 1024});
  options.add("data", o.data, "folder of the data sets; empty: what the programs take", "Run");
  options.add("device", o.device, "where to compute; empty: cpu", "Run");
  options.add("threads", o.threads, "of the CPU; 0: one for each core", "Run", Bounds{.low = 0, .high = 1024});
  options.add("runs", o.runs, "folder of the runs; finished ones in it are not run again", "Run");
  options.add("results", o.results, "folder of the tables and figures", "Run");
  options.hint("resume", "the same command goes on where it stopped");
  options.parse(argc, argv);

  const std::vector<PresetTable> tables = read_presets(presets_folder());
  if (o.list) {
    print_list(tables);
    return 0;
  }
  if (o.names.size() != 1)
    throw Usage(fmt::format("one NAME of a table or figure expected, got {}. See --list.", o.names.size()));
  Report report{find_table(tables, o.names[0]), o.budget, o.seeds, o.device, {}};
  choose(report.table, o);
  report.table.name = part_name(report.table.name, o);
  for (const Preset& p : report.table.presets) report.rows.push_back({p, {}});

  const std::filesystem::path base = report_base(report, o.results);
  std::error_code error;
  std::filesystem::create_directories(base.parent_path(), error);
  const Interrupt interrupt;  // before the lock, so that a signal does not leave the lock behind
  const Lock lock(base.string() + ".lock", base.string());

  std::size_t width = 8;
  for (const Preset& p : report.table.presets) width = std::max(width, p.label.size());
  print_out("{}", report_head(report, width));
  flush_out();

  run_rows(report, o, width, interrupt);
  write_report(report, o.results);
  const bool page = write_report_page(report, o.results);
  print_out("\nresults: {0}/{1}.md, {0}/{1}.json{2}\n", o.results, report.table.name,
            page ? fmt::format(", {}/{}.html", o.results, report.table.name) : "");
  if (interrupt.requested()) {
    print_err("interrupted; the same command goes on from here\n");
    return Interrupt::exit_code;
  }
  const auto failed = [](const ReportRow& row) {
    return std::any_of(row.runs.begin(), row.runs.end(), [](const PresetRun& run) { return !run.problem.empty(); });
  };
  return std::any_of(report.rows.begin(), report.rows.end(), failed) ? 1 : 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("reproduce", [&] { return reel::reproduce(argc, argv); });
}
