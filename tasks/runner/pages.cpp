#include "tasks/runner/pages.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "backends/cpu/product_libraries.h"
#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/app/options.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"
#include "tasks/io/output.h"
#include "tasks/runner/program.h"
#include "tasks/runner/results.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

std::string hours(double seconds) {
  const double h = seconds / 3600;
  return h < 0.01 ? fmt::format("{:.4f}", h) : fmt::format("{:.2f}", h);
}

bool has_runs(const ReportRow& row) { return !row.runs.empty(); }

/// The commands of a row's runs. "SEED" stands for the seed if several have the same otherwise; if there are different
/// ones, each has its seeds behind it.
std::string commands_of(const ReportRow& row) {
  std::vector<std::pair<std::string, std::vector<const PresetRun*>>> commands;
  const bool data_differ = std::any_of(row.runs.begin(), row.runs.end(),
                                       [&](const PresetRun& r) { return r.data != row.runs.front().data; });
  for (const PresetRun& run : row.runs) {
    std::string command = run.command;
    const std::string seed = fmt::format("--seed {}", run.seed);
    if (const std::size_t at = command.find(seed); at != command.npos) command.replace(at, seed.size(), "--seed SEED");
    if (data_differ && !run.data.empty()) command += " --data " + shell_path(run.data);
    const auto same = std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c.first == command; });
    if (same == commands.end())
      commands.push_back({command, {&run}});
    else
      same->second.push_back(&run);
  }
  std::vector<std::string> out;
  for (auto& [command, runs] : commands) {
    if (command.empty()) continue;
    std::vector<std::uint64_t> seeds;
    for (const PresetRun* run : runs) seeds.push_back(run->seed);
    const std::size_t at = command.find("--seed SEED");
    if (seeds.size() == 1 && at != command.npos)
      command.replace(at, std::string_view("--seed SEED").size(), fmt::format("--seed {}", seeds.front()));
    out.push_back("`" + command + "`");
    if (commands.size() > 1)
      out.back() += fmt::format(" (seed{} {})", seeds.size() > 1 ? "s" : "", fmt::join(seeds, ", "));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string seeds_of(const ReportRow& row) {
  std::vector<std::uint64_t> seeds;
  for (const PresetRun& run : row.runs) seeds.push_back(run.seed);
  return fmt::format("{}", fmt::join(seeds, ", "));
}

std::string hours_of(const ReportRow& row) {
  double seconds = 0;
  for (const PresetRun& run : row.runs)
    if (std::isfinite(run.seconds)) seconds += run.seconds;
  return hours(seconds);
}

/// The lines of a row, one for each measure; what is expected of a mean is the mean's own, and it has no command.
std::string lines_of(const Report& report, const ReportRow& row) {
  std::string out;
  for (std::size_t m = 0; m < row.preset.measures.size(); ++m) {
    const Measure& measure = row.preset.measures[m];
    const bool first = m == 0;
    out += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.preset.label + (first ? "" : ": " + measure.name),
        measure.reported.empty() ? "-" : markdown_cell(measure.reported), measured_text(row, m),
        text_of(judge(report, row, m).verdict), first ? count_text(row) : "", first ? updates_text(row) : "",
        first ? seeds_of(row) : "", first ? hours_of(row) : "", first ? markdown_cell(commands_of(row)) : "");
  }
  return out;
}

constexpr const char* index_begin = "# Results\n\nWhat the presets gave beside what their papers report.";

std::string adds_text(const std::string& file) { return fmt::format("`reproduce {}` adds to this page", file); }

/// "AMD EPYC, 1 thread, commit 1234567, 2026-11-25": each set of these that the runs have, and when.
std::string origins_of(const Report& report) {
  std::set<std::string> machines, commits, dates;
  for (const ReportRow& row : report.rows)
    for (const PresetRun& run : row.runs) {
      if (!run.processor.empty())
        machines.insert(
            run.processor + (run.kernels.empty() ? "" : ", " + run.kernels) +
            (run.device.empty() || run.device == "cpu" ? "" : ", " + run.device) +
            (run.threads > 0 ? fmt::format(", {} thread{}", run.threads, run.threads == 1 ? "" : "s") : ""));
      if (!run.version.empty())
        commits.insert("Reel " + run.version + (run.commit.empty() ? "" : ", commit " + run.commit.substr(0, 12)));
      if (run.date.size() >= 10) dates.insert(run.date.substr(0, 10));
    }
  std::string out = fmt::format("{}; {}", fmt::join(machines, "; "), fmt::join(commits, "; "));
  if (!dates.empty()) out += "; " + *dates.begin() + (dates.size() > 1 ? " to " + *dates.rbegin() : "");
  return out;
}

/// True if a figure of this name is one of the whole table, not of a part of it.
bool draws(const PresetTable& table, const std::string& own, const std::string& stem) {
  const auto begins = [&](const Preset& p, const std::string& text) { return text.starts_with(p.label + "-"); };
  return std::any_of(table.presets.begin(), table.presets.end(), [&](const Preset& p) {
    const std::string row = own + "-" + p.label;
    if (table.figure == "map") return stem == row;
    const auto of_case = [&](const std::string& begin) {
      return stem == begin || (!p.in_case.empty() && stem == begin + "-" + p.in_case);
    };
    if (table.figure != "pictures") return of_case(own) || (table.curves && of_case(own + "-curves"));
    if (!stem.starts_with(row + "-")) return false;
    const std::string rest = stem.substr(row.size() + 1);
    return std::none_of(table.presets.begin(), table.presets.end(), [&](const Preset& q) { return begins(q, rest); });
  });
}

/// The figures of a table in the folder.
std::vector<std::string> figures_of(const Report& report, const PaperResults& paper, const std::string& folder) {
  const fs::path base = report_base(report, folder);
  std::vector<std::string> out;
  for (const fs::path& file : entries_of(base.parent_path()))
    if (file.extension() == ".svg" && draws(report.table, base.filename(), file.stem()))
      out.push_back(fmt::format("{}/{}", paper.file, file.filename().string()));
  return out;
}

std::string section_of(const Report& report, const PaperResults& paper, const std::string& folder) {
  const PresetTable& table = report.table;
  std::string md = fmt::format("\n## {}: {}\n\n", table.where, table.title);
  VerdictCount score;
  score.add(report);
  md += fmt::format("`{}`, {}. {}. {}.\n\n", table.name, quantity(report), score.text(), origins_of(report));
  md += "| row | reported | measured | verdict | parameters | updates | seeds | hours | command |\n";
  md += "|---|---|---|---|---|---|---|---|---|\n";
  std::string failed, notes, missing;
  for (const std::string& note : table.notes) notes += "- " + note + "\n";
  for (const ReportRow& row : report.rows) {
    if (!has_runs(row)) {
      missing += (missing.empty() ? "" : ", ") + row.preset.label;
      continue;
    }
    md += lines_of(report, row);
    for (std::size_t m = 0; m < row.preset.measures.size(); ++m)
      if (const Judgement j = judge(report, row, m); j.verdict == Verdict::fail)
        failed += fmt::format("- {}{}: {}\n", row.preset.label, m > 0 ? ", " + row.preset.measures[m].name : "", j.why);
    for (const std::string& note : row.preset.notes) notes += fmt::format("- {}: {}\n", row.preset.label, note);
  }
  if (!failed.empty()) md += "\nNot as the paper has it:\n\n" + failed;
  if (!missing.empty()) md += "\nNot run yet: " + missing + ".\n";
  if (!notes.empty()) md += "\nNotes:\n\n" + notes;
  for (const std::string& figure : figures_of(report, paper, folder))
    md += fmt::format("\n![{}: {}]({})\n", table.where, table.title, figure);
  md += fmt::format("\nNumbers: [{0}.csv]({0}.csv), curves: [{0}-curves.csv]({0}-curves.csv).\n", table.name);
  return md;
}

}  // namespace

std::vector<PaperResults> read_papers(const std::vector<PresetTable>& tables, const std::string& folder,
                                      std::vector<std::string>& stale) {
  std::vector<PaperResults> papers;
  for (const PresetTable& table : tables) {
    const std::string file = paper_of(table.name);
    if (papers.empty() || papers.back().file != file) papers.push_back({file, table.paper, {}, {}, 0, 0});
    PaperResults& paper = papers.back();
    Report report = stored_report(table, folder, stale);
    paper.score.add(report);
    for (const ReportRow& row : report.rows) {
      if (row.preset.task.empty()) continue;  // a mean
      for (const PresetRun& run : row.runs) {
        ++paper.runs;
        if (std::isfinite(run.seconds)) paper.seconds += run.seconds;
      }
    }
    paper.tables.push_back(std::move(report));
  }
  std::erase_if(papers, [](const PaperResults& p) { return p.runs == 0; });
  return papers;
}

PaperResults sum_of(const std::vector<PaperResults>& papers) {
  PaperResults all{"all", "", {}, {}, 0, 0};
  for (const PaperResults& p : papers) {
    all.score.add(p.score);
    all.seconds += p.seconds;
    all.runs += p.runs;
  }
  return all;
}

std::string kernels_text(const std::vector<PaperResults>& papers) {
  std::map<std::string, std::size_t> runs;
  for (const PaperResults& paper : papers)
    for (const Report& report : paper.tables)
      for (const ReportRow& row : report.rows)
        if (!row.preset.task.empty())
          for (const PresetRun& run : row.runs) ++runs[run.kernels.empty() ? "not recorded" : run.kernels];
  std::string out = "kernels:";
  for (const auto& [kernels, count] : runs)
    out += fmt::format("{} {} ({} run{})", out.ends_with(':') ? "" : ",", kernels, count, count == 1 ? "" : "s");
  return out + fmt::format("\na run repeats to the last bit on the same kernels; here: {}\n", cpu::product_libraries());
}

std::string page_of(const PaperResults& paper, const std::string& folder) {
  std::string md = fmt::format("# {}\n\n", paper.paper);
  md += fmt::format("{}; {} run{}, {} hours. {}, and `reproduce --check` judges it again.\n", paper.score.text(),
                    paper.runs, paper.runs == 1 ? "" : "s", hours(paper.seconds), adds_text(paper.file));
  std::string missing;
  for (const Report& report : paper.tables) {
    if (std::any_of(report.rows.begin(), report.rows.end(), has_runs))
      md += section_of(report, paper, folder);
    else
      missing += fmt::format("- {}: {} (`{}`)\n", report.table.where, report.table.title, report.table.name);
  }
  return missing.empty() ? md : md + "\n## Not run yet\n\n" + missing;
}

std::vector<PaperResults> other_papers(const std::vector<PresetTable>& tables, const std::string& folder) {
  const std::string index = text_if_there((fs::path(folder) / "README.md").string());
  std::set<std::string> others;
  for (const std::string& file : foreign_numbers(tables, folder))
    others.insert(fs::path(file).parent_path().filename());
  for (const PresetTable& table : tables) others.erase(paper_of(table.name));
  std::vector<PaperResults> out;
  std::istringstream lines(index);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;  // "", "[title](file.md)", "3", ...
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) {
      const std::size_t first = cell.find_first_not_of(' ');
      cells.push_back(first == cell.npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
    const std::string name = cells.size() == 8 ? cells[1] : "";
    const std::size_t middle = name.find("](");
    if (!name.starts_with('[') || middle == name.npos || !name.ends_with(".md)")) continue;
    const std::string file = name.substr(middle + 2, name.size() - middle - 6);
    if (!others.contains(file)) continue;
    const auto count = [&](std::size_t cell) { return parse<std::size_t>(cells[cell]).value_or(0); };
    PaperResults paper{file, name.substr(1, middle - 1), {}, {}, 0, 0};
    paper.score.pass = count(2);
    paper.score.fail = count(3);
    paper.score.better = count(4);
    paper.score.not_judged = count(5);
    paper.runs = count(6);
    paper.seconds = parse<double>(cells[7]).value_or(0) * 3600;
    out.push_back(std::move(paper));
  }
  return out;
}

std::string index_of(const std::vector<PaperResults>& papers, const std::vector<PaperResults>& others) {
  std::string md = index_begin;
  md +=
      " docs/reproducing.md says how they are judged.\n\n"
      "| paper | pass | fail | of these better than the paper | not judged | runs | hours "
      "|\n|---|---|---|---|---|---|---|\n";
  const auto line = [](const std::string& name, const PaperResults& p) {
    return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, p.score.pass, p.score.fail, p.score.better,
                       p.score.not_judged, p.runs, hours(p.seconds));
  };
  std::vector<PaperResults> both = papers;
  both.insert(both.end(), others.begin(), others.end());
  for (const PaperResults& p : both) md += line(fmt::format("[{}]({}.md)", p.paper, p.file), p);
  md += line("all", sum_of(both));
  const VerdictCount known = sum_of(papers).score;  // why the others are not judged, only their presets know
  if (known.not_judged > 0) md += fmt::format("\nOf those not judged, {}.\n", known.reasons());
  return md;
}

void refuse_foreign_pages(const std::vector<std::string>& tables, const std::string& folder) {
  const auto refuse_unless = [&](const std::string& name, const auto& is_ours) {
    const std::string path = (fs::path(folder) / name).string(), text = text_if_there(path);
    if (!text.empty() && !is_ours(text))
      throw Usage(
          fmt::format("{}: a page of results would replace this file, which is not one. Hint: name another folder, or "
                      "rename the file",
                      one_line(path)));
  };
  refuse_unless("README.md", [](const std::string& text) { return text.starts_with(index_begin); });
  for (const std::string& table : tables) {
    const std::string file = paper_of(table);
    refuse_unless(file + ".md", [&](const std::string& text) { return text.find(adds_text(file)) != text.npos; });
  }
}

void write_pages(const std::vector<PresetTable>& tables, const std::vector<PaperResults>& papers,
                 const std::string& folder) {
  std::vector<std::string> files;
  for (const PaperResults& paper : papers) files.push_back(paper.file);
  refuse_foreign_pages(files, folder);
  for (const PaperResults& paper : papers)
    write_atomically((fs::path(folder) / (paper.file + ".md")).string(), page_of(paper, folder));
  write_atomically((fs::path(folder) / "README.md").string(), index_of(papers, other_papers(tables, folder)));
}

}  // namespace reel
