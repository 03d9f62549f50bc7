#include "tasks/sweep/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/core/error.h"
#include "tasks/app/curves.h"
#include "tasks/app/option.h"
#include "tasks/app/provenance.h"
#include "tasks/app/run_json.h"
#include "tasks/app/statistics.h"
#include "tasks/data/csv.h"
#include "tasks/io/files.h"
#include "tasks/io/output.h"
#include "tasks/runner/record.h"
#include "tasks/sweep/bands.h"

namespace reel {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The value of an option in a combination; empty if it has none.
std::string value_of(const Point& point, const std::string& option) {
  const auto found = std::find_if(point.begin(), point.end(), [&](const auto& p) { return p.first == option; });
  return found == point.end() ? "" : found->second;
}

/// The options that do not have the same value in all combinations, in the order in which they come.
std::vector<std::string> differing_options(const Sweep& sweep) {
  std::vector<std::string> options;
  std::map<std::string, std::set<std::string>> values;
  for (const Combination& c : sweep.combinations)
    for (const auto& [option, value] : c.point)
      if (values[option].insert(value).second && std::find(options.begin(), options.end(), option) == options.end())
        options.push_back(option);
  std::erase_if(options, [&](const std::string& option) {
    const auto has = [&](const Combination& c) { return !value_of(c.point, option).empty(); };
    return values[option].size() < 2 && std::all_of(sweep.combinations.begin(), sweep.combinations.end(), has);
  });
  return options;
}

/// The metric of a run that has ended: of run.json, or the last one of metrics.csv; NaN if neither has it.
double metric_of_run(const std::string& folder, const RunSummary& record, const std::string& metric) {
  const auto& columns = curve_metrics();
  const double value = metric_in(record.json, metric);
  if (!std::isnan(value) || std::ranges::find(columns, metric) == columns.end()) return value;
  const std::vector<RunFolder::Row> rows = RunFolder::view(folder).rows();
  return rows.empty() ? nan : metric_of(rows.back(), metric);
}

/// A hint at the number of a run whose name is near; empty if there is none.
std::string metric_hint(const RunSummary& record, const std::string& metric) {
  std::vector<std::string> names = curve_metrics();
  for (const auto& [name, value] : record.json.items()) {
    if (value.is_number()) names.push_back(name);
    if (!value.is_object()) continue;
    for (const auto& [inner, number] : value.items())
      if (number.is_number() || name == "solved_at") names.push_back(name + "." + inner);
  }
  return nearest_hint(metric, names);
}

void take_run(ResultRow& row, const Sweep& sweep, const SweepRun& run, const RunState& state) {
  if (!state.problem.empty()) return row.problems.emplace_back(run.name, state.problem), void();
  if (state.reached == 0) return ++row.missing, void();
  std::optional<RunSummary> record;
  double metric = nan;
  try {
    record = read_summary(sweep.folder_of(run));
    if (record) metric = metric_of_run(sweep.folder_of(run), *record, sweep.metric);
  } catch (const Error& e) {
    return row.problems.emplace_back(run.name, e.what()), void();
  }
  if (!record) return ++row.missing, void();
  const bool never = std::isinf(metric) && sweep.metric.starts_with("solved_at.");
  if (!std::isfinite(metric) && !never)
    return row.problems.emplace_back(run.name,
                                     fmt::format("has no {}{}", sweep.metric, metric_hint(*record, sweep.metric))),
           void();
  row.seconds += record->seconds;
  row.reached = row.updates ? std::min(row.reached, state.reached) : state.reached;
  row.updates = std::min(row.updates.value_or(record->steps), record->steps);
  row.measured.push_back(metric);
  if (metric == row.best(sweep.higher_is_better()) && !never) row.best_run = run.name;
}

/// "0.01234 ± 0.0021"
std::string number_text(double mean, double deviation) {
  if (std::isinf(mean)) return "never";
  return std::isfinite(mean) ? with_deviation(mean, deviation) : "-";
}

std::string csv_of(const Sweep& sweep, const Results& results) {
  const auto number = [](double x) { return std::isnan(x) ? "" : fmt::format("{}", x); };
  std::string out;
  for (const std::string& option : results.differing) out += csv_field(option) + ",";
  for (const char* of_metric : {"_mean", "_deviation", "_best"}) out += csv_field(sweep.metric + of_metric, true) + ",";
  out += "seeds,failed,missing,updates,best_run,seconds\n";
  for (const ResultRow& row : results.rows) {
    for (const std::string& value : row.values) out += csv_field(value) + ",";
    out += fmt::format("{},{},{},{},{},{},{},{},{}\n", number(row.mean()), number(row.deviation()),
                       number(row.best(sweep.higher_is_better())), row.measured.size(), row.problems.size(),
                       row.missing, row.updates.value_or(0), csv_field(row.best_run), number(row.seconds));
  }
  return out;
}

/// The columns of the table in words; the time is the last.
std::vector<std::vector<std::string>> table_of(const Sweep& sweep, const Results& results) {
  std::vector<std::vector<std::string>> table(1, results.differing);
  for (const std::string& title :
       {sweep.metric, std::string("best"), std::string("seeds"), std::string("updates"), std::string("time")})
    table[0].push_back(title);
  for (const ResultRow& row : results.rows) {
    std::vector<std::string> line = row.values;
    const std::string never = never_text(row.measured);
    line.push_back(never.empty() ? number_text(row.mean(), row.deviation()) : never);
    line.push_back(number_text(row.best(sweep.higher_is_better()), nan));
    const std::size_t all = row.measured.size() + row.problems.size() + row.missing;
    line.push_back(row.measured.size() == all ? fmt::format("{}", all)
                                              : fmt::format("{} of {}", row.measured.size(), all));
    const std::int64_t whole = sweep.combinations[row.at].updates;
    const std::int64_t updates = row.updates.value_or(0);
    line.push_back(updates >= whole ? fmt::format("{}", whole) : fmt::format("{} of {}", updates, whole));
    line.push_back(std::isfinite(row.seconds) ? fmt::format("{:.1f} s", row.seconds) : "-");
    table.push_back(std::move(line));
  }
  return table;
}

std::string bars_escaped(std::string text) {  // a cell of a Markdown table
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// A line for each run that failed.
std::string problems_text(const Results& results, const char* before) {
  std::string out;
  for (const ResultRow& row : results.rows)
    for (const auto& [run, problem] : row.problems) out += fmt::format("{}{}: {}\n", before, run, one_line(problem));
  return out;
}

std::string heading(const Sweep& sweep) {  // as it can be pasted
  return sweep.task + (sweep.fixed.empty() ? "" : " ") + shell_words(sweep.fixed);
}

}  // namespace

double ResultRow::mean() const { return reel::mean(measured); }
double ResultRow::deviation() const { return reel::deviation(measured); }

double ResultRow::best(bool higher) const {
  std::vector<double> values;
  std::ranges::copy_if(measured, std::back_inserter(values), [](double x) { return std::isfinite(x); });
  if (values.empty()) return mean();
  return higher ? *std::ranges::max_element(values) : *std::ranges::min_element(values);
}

bool ResultRow::complete() const { return problems.empty() && missing == 0; }

std::size_t ResultRow::never() const {
  return static_cast<std::size_t>(std::ranges::count_if(measured, [](double x) { return std::isinf(x); }));
}

Results gather(const Sweep& sweep, const Untold& untold) {
  const std::vector<RunState> states = read_states(sweep, untold);
  Results results{differing_options(sweep), {}, count(sweep, states)};
  for (std::size_t at = 0; at < sweep.combinations.size(); ++at) {
    ResultRow row{{}, at};
    for (const std::string& option : results.differing)
      row.values.push_back(value_of(sweep.combinations[at].point, option));
    results.rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < sweep.runs.size(); ++i)
    take_run(results.rows[sweep.runs[i].at], sweep, sweep.runs[i], states[i]);
  for (ResultRow& row : results.rows)
    row.seconds = row.measured.empty() ? nan : row.seconds / static_cast<double>(row.measured.size());
  const bool higher = sweep.higher_is_better();
  std::stable_sort(results.rows.begin(), results.rows.end(), [&](const ResultRow& a, const ResultRow& b) {
    if (sweep.halving > 0 && a.reached != b.reached) return a.reached > b.reached;
    const double x = a.mean(), y = b.mean();
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    if (a.complete() != b.complete()) return a.complete();  // the seeds that are there may be lucky
    if (a.never() != b.never()) return a.never() < b.never();
    return higher ? x > y : x < y;
  });
  return results;
}

void require_metric(const Sweep& sweep) {
  std::optional<RunSummary> without;
  for (const SweepRun& run : sweep.runs) {
    const RunState state = read_state(sweep, run);
    if (!state.problem.empty() || state.reached == 0) continue;
    try {
      const std::string folder = sweep.folder_of(run);
      std::optional<RunSummary> record = read_summary(folder);
      if (!record) continue;
      if (!std::isnan(metric_of_run(folder, *record, sweep.metric))) return;
      without = std::move(record);
    } catch (const Error&) {  // its row will say so
    }
  }
  if (without)
    throw Error(fmt::format("--metric {}: no run of {} has it{}", sweep.metric, sweep.folder,
                            metric_hint(*without, sweep.metric)));
}

std::string results_text(const Sweep& sweep, const Results& results, std::size_t most) {
  const auto table = table_of(sweep, results);
  const auto letters = [](const std::string& text) {  // on screen, not bytes
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  std::vector<std::size_t> widths(table[0].size(), 0);
  const std::size_t shown = std::min(table.size(), most + 1);
  for (std::size_t i = 0; i < shown; ++i)
    for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], letters(table[i][c]));
  std::string out = heading(sweep) + "\n";
  for (std::size_t i = 0; i < shown; ++i) {
    std::string line;
    for (std::size_t c = 0; c < widths.size(); ++c)
      line += table[i][c] + std::string(widths[c] - letters(table[i][c]) + 2, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (shown < table.size()) out += fmt::format("and {} more in results.md\n", table.size() - shown);
  return out + problems_text(results, "failed: ");
}

std::string write_results(const Sweep& sweep, const Results& results) {
  const std::string base = sweep.folder + "/results";
  std::string problem, unwritten;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const Error& e) {
      if (unwritten.empty()) unwritten = e.what();
    }
  };
  std::vector<std::string> left_out;
  attempt([&] { problem = draw_bands(base + ".svg", sweep, results, left_out); });
  std::string md = fmt::format("# Sweep of {}\n\n`{}`\n\n{}.\n\n", sweep.task, heading(sweep), text_of(results.counts));
  const auto table = table_of(sweep, results);
  for (std::size_t i = 0; i < table.size(); ++i) {
    md += "|";
    for (const std::string& cell : table[i]) md += " " + bars_escaped(cell) + " |";
    md += "\n";
    if (i > 0) continue;
    md += "|";
    for (std::size_t c = 0; c < table[i].size(); ++c) md += "---|";
    md += "\n";
  }
  if (const std::string failed = problems_text(results, "- "); !failed.empty())
    md += "\nWithout a number:\n\n" + failed;
  md +=
      problem.empty() && unwritten.empty() ? "\n![Curves](results.svg)\n" : "\n" + one_line(problem + unwritten) + "\n";
  for (const std::string& line : left_out) md += "\n" + one_line(line) + "\n";
  attempt([&] { write_atomically(base + ".md", md); });
  attempt([&] { write_atomically(base + ".csv", csv_of(sweep, results)); });
  attempt([&] { write_page(sweep, results); });
  if (unwritten.empty() && !left_out.empty()) unwritten = left_out.front();
  if (!unwritten.empty()) throw Error(unwritten);
  return problem;
}

}  // namespace reel
