#include "tasks/runner/report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "tasks/app/run_json.h"
#include "tasks/app/statistics.h"
#include "tasks/io/files.h"
#include "tasks/io/output.h"
#include "tasks/runner/verdict.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The number of letters on screen, not of bytes.
std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > letters(text) ? width - letters(text) : 0, ' ');
}

/// "12.0 s", "3.5 min", "2.1 h"; "-" for none.
std::string in_one_unit(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  if (seconds < 3600) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

const PresetRun* first_done(const ReportRow& row) {
  const auto found = std::find_if(row.runs.begin(), row.runs.end(), [](const PresetRun& r) { return r.done(); });
  return found == row.runs.end() ? nullptr : &*found;
}

std::string time_text(const ReportRow& row) {
  double seconds = 0;
  bool all_kept = true;
  for (const PresetRun& run : row.runs) {
    if (std::isfinite(run.seconds)) seconds += run.seconds;
    all_kept = all_kept && run.kept;
  }
  if (seconds > 0) return in_one_unit(seconds) + (all_kept ? " (kept)" : "");
  return all_kept && first_done(row) ? "(kept)" : "-";
}

/// What the runs that did not diverge have.
std::string numbers_text(const ReportRow& row, std::size_t measure) {
  const auto values = row.measured(measure);
  if (values.empty()) return "-";
  const auto never = static_cast<std::size_t>(std::count(values.begin(), values.end(), INFINITY));
  if (never == values.size()) return "never";
  if (never > 0) return fmt::format("never in {} of {}", never, values.size());
  std::string out = with_deviation(row.mean(measure), row.spread(measure));
  const PresetRun* run = first_done(row);
  const Measure& m = row.preset.measures[measure];
  if (m.metric.ends_with("valid_loss") && run->baseline > 0)
    out += fmt::format(" ({:.3g} of baseline)", row.mean(measure) / in_unit(m, run->baseline));
  return out;
}

/// The name of a row, or of one of its further measures.
std::string label_of(const ReportRow& row, std::size_t measure) {
  return row.preset.label + (measure > 0 ? ": " + row.preset.measures[measure].name : "");
}

std::string reported_text(const Measure& m) { return m.reported.empty() ? "-" : m.reported; }

/// The width of the column of reported numbers, with the space behind it.
std::size_t reported_width(const Report& report) {
  std::size_t width = 30;
  for (const ReportRow& row : report.rows)
    for (const Measure& m : row.preset.measures) width = std::max(width, letters(reported_text(m)) + 2);
  return width;
}

}  // namespace

std::string measured_text(const ReportRow& row, std::size_t measure) {
  const std::string out = numbers_text(row, measure);
  const auto diverged = std::count_if(row.runs.begin(), row.runs.end(), [](const PresetRun& r) { return r.diverged; });
  if (diverged == 0) return out;
  return fmt::format("{}{} of {} diverged", out == "-" ? "" : out + ", ", diverged, row.runs.size());
}

std::string count_text(const ReportRow& row) {
  const PresetRun* run = first_done(row);
  if (!run || run->parameters < 0) return "-";
  if (!row.preset.parameters) return fmt::format("{}", run->parameters);
  if (*row.preset.parameters == run->parameters) return fmt::format("{} (exact)", run->parameters);
  return fmt::format("{} (NOT {})", run->parameters, *row.preset.parameters);
}

std::string updates_text(const ReportRow& row) {
  const PresetRun* run = first_done(row);
  if (!run || run->updates == 0) return "-";  // a mean has none
  std::int64_t fewest = run->updates, most = run->updates, whole = run->whole;
  for (const PresetRun& r : row.runs)
    if (r.done())
      fewest = std::min(fewest, r.updates), most = std::max(most, r.updates), whole = std::max(whole, r.whole);
  const std::string updates = fewest == most ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most);
  return fewest == whole ? updates : fmt::format("{} of {}", updates, whole);
}

std::string problems_of(const ReportRow& row) {
  std::string out;
  for (const PresetRun& run : row.runs) {
    if (run.done() || (!run.interrupted && !failed(row.preset, run))) continue;
    const std::string seed = row.runs.size() > 1 ? fmt::format("seed {}: ", run.seed) : "";
    out += (out.empty() ? "" : "; ") + seed + (run.interrupted ? "interrupted" : "failed: " + run.problem);
  }
  return out;
}

std::string quantity(const Report& report) {
  std::vector<std::string> said;
  for (const ReportRow& row : report.rows)
    for (const Measure& m : row.preset.measures) {
      const std::string text = m.metric + (m.unit.empty() ? "" : fmt::format(" [{}]", m.unit));
      if (std::find(said.begin(), said.end(), text) == said.end()) said.push_back(text);
    }
  return fmt::format("{}", fmt::join(said, ", "));
}

std::string markdown_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::vector<double> ReportRow::measured(std::size_t measure) const {
  std::vector<double> out;
  for (const PresetRun& run : runs)
    if (run.done() && measure < run.measured.size() && !std::isnan(run.measured[measure]))
      out.push_back(run.measured[measure]);
  return out;
}

double ReportRow::mean(std::size_t measure) const { return reel::mean(measured(measure)); }
double ReportRow::spread(std::size_t measure) const { return deviation(measured(measure)); }

std::string report_head(const Report& r, std::size_t width) {
  std::string out = fmt::format("{}: {} ({}, {})\n", r.table.name, r.table.title, r.table.paper, r.table.where);
  out += fmt::format("budget {:g}, {} seed{}, {}\n", r.budget, r.seeds, r.seeds == 1 ? "" : "s", quantity(r));
  for (const std::string& note : r.table.notes) out += "note: " + note + "\n";
  return out + fmt::format("\n{}  {}{}{}{}{}{}\n", padded("", width), padded("reported", reported_width(r)),
                           padded("measured", 40), padded("verdict", 12), padded("parameters", 18),
                           padded("updates", 16), "time");
}

std::string report_line(const Report& report, const ReportRow& row, std::size_t width, bool ended) {
  std::string out;
  for (std::size_t m = 0; m < row.preset.measures.size(); ++m) {
    const Measure& measure = row.preset.measures[m];
    const Judgement judged = judge(report, row, m);
    out += fmt::format("{}  {}{}{}", padded(m == 0 ? row.preset.label : "  " + measure.name, width),
                       padded(reported_text(measure), reported_width(report)), padded(measured_text(row, m) + "  ", 40),
                       padded(judged.open && !ended ? "open" : text_of(judged.verdict), 12));
    if (m == 0) out += padded(count_text(row) + "  ", 18) + padded(updates_text(row) + "  ", 16) + time_text(row);
    out += '\n';
  }
  if (const std::string problems = problems_of(row); !problems.empty())
    out += fmt::format("{}  {}\n", padded("", width), problems);
  return out;
}

std::string report_verdicts(const Report& report) {
  std::string out;
  for (const ReportRow& row : report.rows)
    for (std::size_t m = 0; m < row.preset.measures.size(); ++m)
      if (const Judgement judged = judge(report, row, m); judged.verdict == Verdict::fail)
        out += fmt::format("fail: {}{}: {}\n", row.preset.label, m > 0 ? ", " + row.preset.measures[m].name : "",
                           judged.why);
  VerdictCount score;
  score.add(report);
  return out + fmt::format("{}: {}\n", report.table.name, score.text());
}

std::string report_base(const Report& r, const std::string& folder) {
  return (fs::path(folder) / r.table.name).string();
}

namespace {

/// What a page says below its table, a list in Markdown each.
struct Remarks {
  std::string verdicts, failed, notes;
};

Remarks remarks_on(const Report& r) {
  Remarks out;
  for (const std::string& note : r.table.notes) out.notes += "- " + note + "\n";
  for (const ReportRow& row : r.rows) {
    for (std::size_t m = 0; m < row.preset.measures.size(); ++m)
      if (const Judgement judged = judge(r, row, m); judged.verdict == Verdict::fail)
        out.verdicts += fmt::format("- {}: {}\n", label_of(row, m), judged.why);
    if (const std::string p = problems_of(row); !p.empty())
      out.failed += fmt::format("- {}: {}\n", row.preset.label, p);
    for (const std::string& note : row.preset.notes) out.notes += fmt::format("- {}: {}\n", row.preset.label, note);
  }
  return out;
}

std::string markdown_row(const Report& r, const ReportRow& row, std::size_t m) {
  const bool first = m == 0;
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", label_of(row, m),
                     markdown_cell(reported_text(row.preset.measures[m])), measured_text(row, m),
                     text_of(judge(r, row, m).verdict), first ? count_text(row) : "", first ? updates_text(row) : "",
                     first ? time_text(row) : "");
}

std::string markdown_of(const Report& r, const ReportFigures& drawn) {
  std::string md = fmt::format("# {}\n\n{}, {}: `{}`\n\n", r.table.title, r.table.paper, r.table.where, r.table.name);
  md += fmt::format("Metric: {}. Budget: {:g} of the paper's updates. Seeds: {}{}. Device: {}.\n\n", quantity(r),
                    r.budget, r.seeds, r.seeds > 1 ? ", mean ± standard deviation" : "",
                    r.device.empty() ? "cpu" : r.device);
  md += "| preset | reported | measured | verdict | parameters | updates | time |\n|---|---|---|---|---|---|---|\n";
  for (const ReportRow& row : r.rows)
    for (std::size_t m = 0; m < row.preset.measures.size(); ++m) md += markdown_row(r, row, m);
  VerdictCount score;
  score.add(r);
  md += fmt::format("\n{}.\n", score.text());
  const Remarks remarks = remarks_on(r);
  if (!remarks.verdicts.empty()) md += "\nNot as the paper has it:\n\n" + remarks.verdicts;
  if (!remarks.failed.empty()) md += "\nWithout a number:\n\n" + remarks.failed;
  if (!remarks.notes.empty()) md += "\nNotes:\n\n" + remarks.notes;
  for (const std::string& figure : drawn.names) md += fmt::format("\n![{}]({})\n", r.table.title, figure);
  for (const auto* lines : {&drawn.problems, &drawn.unwritten})
    for (const std::string& line : *lines) md += "\n" + one_line(line) + "\n";
  return md;
}

nlohmann::ordered_json json_of(const PresetRun& run) {
  return {{"folder", run.folder},
          {"seed", run.seed},
          {"command", run.command},
          {"measured", run.done() ? run.measured.front() : nan},
          {"problem", run.interrupted ? "interrupted" : run.problem},
          {"baseline", run.baseline},
          {"parameters", run.parameters},
          {"updates", run.updates},
          {"whole", run.whole},
          {"seconds", run.seconds},
          {"threads", run.threads}};
}

/// A measure besides the main one.
nlohmann::ordered_json json_of_column(const Report& r, const ReportRow& row, std::size_t m) {
  const Measure& measure = row.preset.measures[m];
  const Judgement judged = judge(r, row, m);
  return {{"name", measure.name},
          {"metric", measure.metric},
          {"unit", measure.unit},
          {"reported", measure.reported},
          {"mean", row.mean(m)},
          {"spread", row.spread(m)},
          {"verdict", text_of(judged.verdict)},
          {"why", judged.why}};
}

nlohmann::ordered_json json_of(const Report& r, const ReportRow& row) {
  const Preset& p = row.preset;
  const Measure& main = p.main();
  const Judgement judged = judge(r, row, 0);
  nlohmann::ordered_json line{{"preset", p.name},
                              {"task", p.task},
                              {"options", p.options},
                              {"metric", main.metric},
                              {"unit", main.unit},
                              {"reported", main.reported},
                              {"reported_value", nullptr},
                              {"doubtful", main.doubtful},
                              {"mean", row.mean()},
                              {"spread", row.spread()},
                              {"verdict", text_of(judged.verdict)},
                              {"why", judged.why},
                              {"exact_parameters", nullptr},
                              {"notes", p.notes}};
  if (main.value) line["reported_value"] = *main.value;
  if (p.parameters) line["exact_parameters"] = *p.parameters;
  for (std::size_t m = 1; m < p.measures.size(); ++m) line["columns"].push_back(json_of_column(r, row, m));
  for (const PresetRun& run : row.runs) line["runs"].push_back(json_of(run));
  return line;
}

nlohmann::ordered_json json_of(const Report& r, const std::vector<std::string>& figures) {
  nlohmann::ordered_json json{{"name", r.table.name},   {"title", r.table.title}, {"paper", r.table.paper},
                              {"where", r.table.where}, {"budget", r.budget},     {"seeds", r.seeds},
                              {"notes", r.table.notes}, {"figures", figures},     {"rows", nlohmann::json::array()}};
  for (const ReportRow& row : r.rows) json["rows"].push_back(json_of(r, row));
  return json;
}

}  // namespace

void write_report(const Report& r, const std::string& folder) {
  const std::string base = report_base(r, folder);
  const ReportFigures drawn = draw_report(r, folder);
  write_atomically(base + ".md", markdown_of(r, drawn));
  write_atomically(base + ".json",
                   json_of(r, drawn.names).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (!drawn.unwritten.empty()) throw Error(drawn.unwritten.front());
}

}  // namespace reel
