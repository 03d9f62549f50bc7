// Reruns tables and figures of papers: starts the task programs on their presets, prints the reported values next to
// the measured ones, judges them, and keeps the results.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "tasks/app/progress.h"
#include "tasks/app/run.h"
#include "tasks/io/files.h"
#include "tasks/io/lock.h"
#include "tasks/runner/campaign.h"
#include "tasks/runner/pages.h"
#include "tasks/runner/program.h"
#include "tasks/runner/ranking.h"
#include "tasks/runner/results.h"

namespace reel {
namespace {

constexpr const char* kept_results = "docs/results";  // of the source tree

struct ReproduceOptions {
  Choice what;
  bool list = false, check = false, pages = false, ranks = false;
  CampaignOptions campaign;
};

/// Tells of results that no preset claims; true if there are some.
bool tell_foreign(const std::vector<PresetTable>& tables, const std::string& folder) {
  const std::vector<std::string> files = foreign_numbers(tables, folder);
  for (const std::string& file : files) print_err("reproduce: {}: there is no preset of this table\n", one_line(file));
  return !files.empty();
}

/// Throws Usage if nothing is stored in the folder.
void require_numbers(const char* option, const std::vector<PresetTable>& tables, const std::string& folder) {
  if (!has_numbers(tables, folder))
    throw Usage(fmt::format("{}: {} has no stored results. Hint: reproduce --results FOLDER stores those of --budget 1",
                            option, one_line(folder)));
}

/// Draws the figures of a folder of results and writes its pages, from its data alone; 1 if a figure cannot be drawn.
int write_anew(const std::vector<PresetTable>& tables, const std::string& folder) {
  require_numbers("--pages", tables, folder);
  std::vector<std::string> stale, problems, names;
  const auto papers = read_papers(tables, folder, stale);
  for (const PaperResults& paper : papers) names.push_back(paper.file);
  refuse_foreign_pages(names, folder);  // before the figures
  for (const PaperResults& paper : papers)
    for (const Report& report : paper.tables) {
      const ReportFigures drawn = draw_report(report, folder);
      problems.insert(problems.end(), drawn.problems.begin(), drawn.problems.end());
      problems.insert(problems.end(), drawn.unwritten.begin(), drawn.unwritten.end());
    }
  write_pages(tables, papers, folder);
  tell_foreign(tables, folder);
  for (const std::string& problem : problems) print_err("reproduce: {}\n", one_line(problem));
  return problems.empty() ? 0 : 1;
}

std::string list_of(const std::vector<PresetTable>& tables) {
  std::string out;
  for (const PresetTable& t : tables)
    out += fmt::format("{:<22} {:>3} presets  {} - {}, {}\n", t.name, t.presets.size(), t.title, t.paper, t.where);
  return out;
}

/// Judges what a folder holds, without running anything; 1 if it is damaged, or its pages are not what its data say.
int check(const std::vector<PresetTable>& tables, const std::string& folder) {
  if (!std::filesystem::is_directory(folder))
    throw Usage(fmt::format("{}: there is no such folder of results", folder));
  require_numbers("--check", tables, folder);
  std::vector<std::string> stale;
  const auto papers = read_papers(tables, folder, stale);
  int code = 0;
  const auto compare = [&](const std::string& page, const std::string& text) {
    if (text_if_there(page) == text) return;
    print_err("reproduce: {}: is not what the data say. Hint: reproduce --pages {}\n", one_line(page),
              shell_path(folder));
    code = 1;
  };
  const auto print_score = [](const PaperResults& p) {
    print_out("{}: {}; {} run{}, {:.2g} hours\n", p.file, p.score.text(), p.runs, p.runs == 1 ? "" : "s",
              p.seconds / 3600);
  };
  for (const PaperResults& paper : papers) {
    print_score(paper);
    for (const Report& report : paper.tables) {
      const std::string curves = curves_file(folder, report.table.name);
      if (std::filesystem::exists(numbers_file(folder, report.table.name)) && !std::filesystem::exists(curves)) {
        print_err("reproduce: {}: is missing, but the page links to it\n", one_line(curves));
        code = 1;
      } else {
        for (const std::string& what : contradictions(report)) {
          print_err("reproduce: {}\n", one_line(what));
          code = 1;
        }
      }
      for (const ReportRow& row : report.rows)
        for (std::size_t m = 0; m < row.preset.measures.size(); ++m) {
          if (row.runs.empty()) continue;
          const Judgement judged = judge(report, row, m);
          const std::string column = m > 0 ? ", " + row.preset.measures[m].name : "";
          print_out("  {:<10}  {}{}: {}\n", text_of(judged.verdict), row.preset.name, column, judged.why);
        }
    }
    compare(folder + "/" + paper.file + ".md", page_of(paper, folder));
  }
  for (const std::string& name : stale) {
    print_err("reproduce: {}: the preset has changed since, or is gone\n", one_line(name));
    code = 1;
  }
  if (tell_foreign(tables, folder)) code = 1;
  compare(folder + "/README.md", index_of(papers, other_papers(tables, folder)));
  const PaperResults all = sum_of(papers);
  print_score(all);
  if (all.score.not_judged > 0) print_out("not judged: {}\n", all.score.reasons());
  print_out("{}", kernels_text(papers));
  return code;
}

/// Writes what a table's new runs add to the results: the report of this call, numbers, figures of the whole table.
void keep(const Chosen& c, const std::string& folder, bool whole) {
  write_report(c.report, folder);
  if (!whole) return;  // parts of the paper's updates are no results
  store(c.whole, c.report.rows, folder);
  std::vector<std::string> stale;
  Report all = stored_report(c.whole, folder, stale);
  for (ReportRow& row : all.rows)
    for (PresetRun& run : row.runs)
      for (const ReportRow& fresh : c.report.rows)
        for (const PresetRun& one : fresh.runs)
          if (fresh.preset.name == row.preset.name && one.seed == run.seed) run.folder = one.folder;  // has pictures
  draw_report(all, folder);
}

/// What is said when the time was too short for all runs.
std::string hours_text(const CampaignEnd& end, double hours) {
  if (end.next == 0) return "stopped at the end of --hours; the same command goes on from here\n";
  const double enough = (1.25 * end.next + 2) / 3600, digit = std::pow(10, std::floor(std::log10(enough)));
  return fmt::format("{} of {} runs fit in --hours {:g}; the next one takes about {}. Hint: --hours {:g}\n",
                     end.runs - end.left, end.runs, hours,
                     end.next < 1 ? fmt::format("{:.2g} s", end.next) : duration(end.next),
                     std::ceil(enough / digit) * digit);
}

void add_options(Options& options, ReproduceOptions& o) {
  CampaignOptions& c = o.campaign;
  options.arguments("NAME", o.what.names);
  options.flag("list", o.list, "list all tables and figures and exit", "Selection");
  options.flag("all", o.what.all, "all tables and figures of all papers", "Selection");
  options.add("cells", o.what.cells, "only these models or cells, comma-separated", "Selection");
  options.add("cases", o.what.cases, "only these cases, comma-separated", "Selection");
  options.flag("check", o.check,
               "run nothing: check the results in the folder NAME (docs/results), and compare its pages with its data",
               "Selection");
  options.flag("pages", o.pages,
               "run nothing: draw the figures and write the pages of the folder NAME (docs/results) from its data",
               "Selection");
  options.flag("ranks", o.ranks,
               "run nothing: count how often each model is best, and among the best two, in the stored results of the "
               "tables NAME; --cells and --cases restrict it",
               "Selection");
  options.add("budget", c.run.budget, "fraction of the paper's updates to do, at least 20 updates", "Run",
              Bounds{.low = 1e-9, .high = 1000});
  options.add("seeds", c.seeds, "runs per experiment, with seeds 1, 2, ...", "Run", Bounds{.low = 1, .high = 1000});
  options.add("hours", c.hours, "time budget in hours: do the runs that fit, cheapest first; 0: do all", "Run",
              Bounds{.low = 0, .high = 1e5});
  options.add("stop-below", c.run.stop_below, "stop a run when its validation loss is below this; 0: never", "Run",
              Bounds{.low = 0});
  options.add("jobs", c.jobs, "concurrent runs; with several, --threads 1 is often best", "Run",
              Bounds{.low = 1, .high = 1024});
  options.add("data", c.run.data, "folder of the data sets; empty: default of the programs", "Run");
  options.add("device", c.run.device, "device to compute on; empty: cpu", "Run");
  options.add("threads", c.run.threads, "CPU threads; 0: one per core", "Run", Bounds{.low = 0, .high = 1024});
  options.add("runs", c.run.root, "folder of the runs; finished runs in it are not repeated", "Run");
  options.add("results", c.results, "folder of the tables, figures and pages", "Run");
  options.hint("resume", "the same command goes on where it stopped");
}

/// Throws Usage for options beside one that runs nothing, on which they have no effect.
void refuse_others(const Options& options, const ReproduceOptions& o) {
  if (!o.check && !o.pages && !o.ranks) return;
  const std::string what = o.check ? "check" : o.pages ? "pages" : "ranks";
  const std::vector<std::string> choosing{"all", "cells", "cases", "results"};
  std::vector<std::string> others{"check",      "pages", "ranks", "budget", "seeds",   "hours",
                                  "stop-below", "jobs",  "data",  "device", "threads", "runs"};
  if (what != "ranks") others.insert(others.begin(), choosing.begin(), choosing.end());
  for (const std::string& name : others)
    if (name != what && options.typed(name))
      throw Usage(fmt::format("--{}: has no effect on --{}, which takes {}", name, what,
                              what == "ranks" ? "NAMES or --all, --cells, --cases and --results"
                                              : "a folder as NAME, and reads all of it"));
}

/// Prints how often each model of the chosen tables is best, by what the folder has of them.
void print_ranks(const std::vector<Chosen>& chosen, const std::vector<PresetTable>& tables, const std::string& folder) {
  std::vector<std::string> stale;
  std::vector<Report> stored;
  require_numbers("--ranks", tables, folder);
  for (const Chosen& one : chosen) {
    Report report = stored_report(one.whole, folder, stale);
    report.table.presets = one.report.table.presets;
    std::erase_if(report.rows, [&](const ReportRow& row) {
      const auto same = [&](const Preset& p) { return p.name == row.preset.name; };
      return std::ranges::none_of(report.table.presets, same);
    });
    stored.push_back(std::move(report));
  }
  print_out("{}", ranking(stored));
}

/// Locks the results of each table, as long as the locks live.
std::vector<std::unique_ptr<Lock>> lock_results(const std::vector<Chosen>& chosen, const std::string& folder) {
  std::vector<std::unique_ptr<Lock>> locks;
  for (const Chosen& one : chosen) {
    const std::filesystem::path base = report_base(one.report, folder);
    std::error_code error;
    std::filesystem::create_directories(base.parent_path(), error);
    locks.push_back(std::make_unique<Lock>(base.string() + ".lock", base.string()));
  }
  return locks;
}

bool any_failed(const std::vector<Chosen>& chosen) {
  for (const Chosen& one : chosen)
    for (const ReportRow& row : one.report.rows)
      for (const PresetRun& run : row.runs)
        if (failed(row.preset, run)) return true;
  return false;
}

/// Gives each report the settings of this call; returns the width of the column of presets.
std::size_t set_up(std::vector<Chosen>& chosen, const CampaignOptions& c) {
  std::size_t width = 8;
  for (Chosen& one : chosen) {
    one.report.budget = c.run.budget;
    one.report.seeds = c.seeds;
    one.report.device = c.run.device;
    for (const ReportRow& row : one.report.rows) width = std::max(width, row.preset.label.size());
  }
  return width;
}

/// Writes the pages of a folder of results, and prints the scores of its papers.
void write_all_pages(const std::vector<PresetTable>& tables, const std::string& folder) {
  std::vector<std::string> stale;
  const auto papers = read_papers(tables, folder, stale);
  write_pages(tables, papers, folder);
  tell_foreign(tables, folder);
  for (const PaperResults& paper : papers) print_out("{0}/{1}.md: {2}\n", folder, paper.file, paper.score.text());
}

/// Runs what is chosen, and writes its results; the exit code.
int run(std::vector<Chosen>& chosen, const std::vector<PresetTable>& tables, const CampaignOptions& c) {
  if (c.run.budget == 1) {
    std::vector<std::string> names;
    for (const Chosen& one : chosen) names.push_back(one.whole.name);
    refuse_foreign_pages(names, c.results);
  }
  const std::size_t width = set_up(chosen, c);
  const Interrupt interrupt;  // before the locks, so that a signal does not leave them behind
  const auto locks = lock_results(chosen, c.results);

  // one table in its own order is printed row by row from the top; otherwise each table is printed when it is complete
  const bool in_order = chosen.size() == 1 && c.hours == 0, whole = c.run.budget == 1;
  std::vector<std::size_t> printed(chosen.size(), 0), ended(chosen.size(), 0);
  const auto print_rows = [&](std::size_t t, bool all) {
    const Report& report = chosen[t].report;
    for (; printed[t] < report.rows.size() && (all || !report.rows[printed[t]].runs.empty()); ++printed[t])
      if (!report.rows[printed[t]].runs.empty())
        print_out("{}", report_line(report, report.rows[printed[t]], width, all));
    flush_out();
  };
  bool complete = true;  // are the pages
  const auto finish = [&](std::size_t t) {
    Report& report = chosen[t].report;
    add_means(report, chosen[t].whole);
    if (!in_order) print_out("{}", report_head(report, width));
    print_rows(t, true);
    if (whole) print_out("\n{}", report_verdicts(report));
    keep(chosen[t], c.results, whole);
    const ReportPage page = write_report_page(report, c.results);
    complete = complete && page != ReportPage::incomplete;
    print_out("{2}results: {0}/{1}.md, {0}/{1}.json{3}\n{2}", c.results, report.table.name, in_order ? "" : "\n",
              page != ReportPage::none ? fmt::format(", {}/{}.html", c.results, report.table.name) : "");
    flush_out();
  };
  if (in_order) print_out("{}", report_head(chosen[0].report, width));
  flush_out();
  const CampaignEnd end = run_campaign(chosen, c, interrupt, [&](std::size_t t, std::size_t) {
    if (in_order) print_rows(t, false);
    if (whole) store(chosen[t].whole, chosen[t].report.rows, c.results);  // whatever happens to the rest
    if (++ended[t] == chosen[t].report.rows.size()) finish(t);
  });
  for (std::size_t t = 0; t < chosen.size(); ++t)
    if (ended[t] > 0 && ended[t] < chosen[t].report.table.presets.size()) finish(t);
  if (whole) write_all_pages(tables, c.results);
  if (interrupt.requested()) {
    print_err("interrupted; the same command goes on from here\n");
    return Interrupt::exit_code;
  }
  if (end.left > 0) print_err("{}", hours_text(end, c.hours));
  return complete && !any_failed(chosen) ? 0 : 1;
}

int reproduce(int argc, const char* const* argv) {
  ReproduceOptions o;
  o.campaign.results = "results";
  Options options("reproduce",
                  "Reproduces tables and figures of papers, and prints measured next to reported numbers.");
  add_options(options, o);
  options.parse(argc, argv);
  if (!o.list) refuse_others(options, o);

  const std::vector<PresetTable> tables = read_presets(presets_folder());
  if (o.list) throw Exit{0, list_of(tables)};
  if (o.check || o.pages) {
    if (o.what.names.size() > 1) throw Usage("one folder NAME expected");
    const std::string folder = o.what.names.empty() ? kept_results : o.what.names[0];
    return o.check ? check(tables, folder) : write_anew(tables, folder);
  }
  std::vector<Chosen> chosen = choose(tables, o.what);
  if (!o.ranks) return run(chosen, tables, o.campaign);
  print_ranks(chosen, tables, o.campaign.results);
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("reproduce", [&] { return reel::reproduce(argc, argv); });
}
