#include "tasks/runner/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/app/options.h"
#include "tasks/app/train.h"
#include "tasks/data/csv.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"
#include "tasks/io/lock.h"
#include "tasks/io/output.h"
#include "tasks/runner/program.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_points = 200;  // of a stored curve

const std::vector<std::string> number_columns{
    "preset",  "seed",   "metric",    "unit",    "value",   "baseline", "parameters", "updates", "whole",   "seconds",
    "threads", "device", "processor", "kernels", "version", "commit",   "date",       "options", "command", "data"};
const std::vector<std::string> curve_columns = split_list(fmt::format("preset,seed,{}", RunFolder::columns));

/// A run of a preset as it is stored; `options` marks those that it had.
struct Stored {
  std::string preset, options;
  PresetRun run;
  std::vector<std::pair<std::string, std::string>> metrics;  // with their units, one for each number in `run`
};

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

/// The fields of a line, by the names in the head of the file.
class Line {
 public:
  Line(const std::string& path, std::int64_t line, const std::vector<std::string>& names,
       const std::vector<std::string>& fields)
      : path_(path), line_(line), names_(names), fields_(fields) {
    if (fields.size() != names.size()) fail(fmt::format("{} fields expected, got {}", names.size(), fields.size()));
  }
  const std::string& text(const char* name) const {
    static const std::string none;
    const auto at = std::find(names_.begin(), names_.end(), name);
    return at == names_.end() ? none : fields_[static_cast<std::size_t>(at - names_.begin())];
  }
  template <class T>
  T number(const char* name) const {
    const auto value = parse<T>(text(name));
    if (!value) fail(fmt::format("{}: a number expected, got \"{}\"", name, one_line(text(name))));
    return *value;
  }
  double number_or_none(const char* name) const { return text(name).empty() ? nan : number<double>(name); }
  /// The fields that all lines of a run have in common, with their names.
  std::vector<std::pair<std::string, std::string>> of_run() const {
    std::vector<std::pair<std::string, std::string>> out;
    for (std::size_t i = 0; i < fields_.size(); ++i)
      if (names_[i] != "metric" && names_[i] != "unit" && names_[i] != "value") out.emplace_back(names_[i], fields_[i]);
    return out;
  }
  /// Throws Error unless this line has these fields of its run's first one.
  void require(const std::vector<std::pair<std::string, std::string>>& first) const {
    for (const auto& [name, expected] : first)
      if (const std::string& got = text(name.c_str()); got != expected)
        fail(fmt::format("{}: \"{}\" expected, as in the first line of this run, got \"{}\"", name, one_line(expected),
                         one_line(got)));
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}:{}", path_, line_), what); }

 private:
  const std::string& path_;
  std::int64_t line_;
  const std::vector<std::string>&names_, &fields_;
};

/// Calls a function with each line of a file behind its head; a file that is not there has none. A file that was
/// written before there were kernels, or data, lacks their column.
void read_lines(const std::string& path, const std::vector<std::string>& columns,
                const std::function<void(const Line&)>& take) {
  const std::string text = text_if_there(path);
  if (text.empty()) return;
  std::vector<std::string> names;
  CsvReader csv(path, [&](std::int64_t line, const std::vector<std::string>& fields) {
    if (!names.empty()) return take(Line(path, line, names, fields));
    std::vector<std::string> expected = columns;
    for (const char* later : {"kernels", "data"})
      if (std::find(fields.begin(), fields.end(), later) == fields.end()) std::erase(expected, later);
    if (fields != expected) throw Error(path, fmt::format("the head {} expected", fmt::join(columns, ",")));
    names = fields;
  });
  csv.feed(text);
  csv.finish();
}

std::vector<Stored> read_numbers(const std::string& path) {
  std::vector<Stored> out;
  std::set<std::pair<std::string, std::uint64_t>> runs;
  std::vector<std::pair<std::string, std::string>> first;  // of the fields that the lines of the run have in common
  read_lines(path, number_columns, [&](const Line& line) {
    const std::string& preset = line.text("preset");
    const auto seed = line.number<std::uint64_t>("seed");
    if (out.empty() || out.back().preset != preset || out.back().run.seed != seed) {
      if (!runs.emplace(preset, seed).second)
        line.fail(fmt::format("{}, seed {}, is there already, further up. Hint: keep one of the two", preset, seed));
      Stored s{preset, line.text("options"), {}, {}};
      s.run.seed = seed;
      s.run.kept = true;
      s.run.baseline = line.number_or_none("baseline");
      s.run.parameters = line.number<std::int64_t>("parameters");
      s.run.updates = line.number<std::int64_t>("updates");
      s.run.whole = line.number<std::int64_t>("whole");
      s.run.seconds = line.number_or_none("seconds");
      s.run.threads = line.number<int>("threads");
      s.run.device = line.text("device");
      s.run.processor = line.text("processor");
      s.run.kernels = line.text("kernels");
      s.run.version = line.text("version");
      s.run.commit = line.text("commit");
      s.run.date = line.text("date");
      s.run.command = line.text("command");
      s.run.data = line.text("data");
      out.push_back(std::move(s));
      first = line.of_run();
    }
    line.require(first);
    Stored& s = out.back();
    const std::pair metric(line.text("metric"), line.text("unit"));
    if (std::find(s.metrics.begin(), s.metrics.end(), metric) != s.metrics.end())
      line.fail(fmt::format("{}, seed {}: {} is there already, further up. Hint: keep one of the two", preset, seed,
                            metric.first));
    s.metrics.push_back(metric);
    s.run.diverged = line.text("value") == "diverged";
    s.run.measured.push_back(s.run.diverged ? nan : line.number_or_none("value"));
    if (s.run.diverged) s.run.problem = "diverged";
  });
  return out;
}

using Curves = std::map<std::pair<std::string, std::uint64_t>, std::vector<RunFolder::Row>>;

Curves read_curves(const std::string& path) {
  Curves out;
  read_lines(path, curve_columns, [&](const Line& line) {
    out[{line.text("preset"), line.number<std::uint64_t>("seed")}].push_back(
        {line.number<std::int64_t>("step"), line.number<std::int64_t>("examples"), line.number_or_none("seconds"),
         line.number_or_none("train_loss"), line.number_or_none("valid_loss"), line.number_or_none("accuracy"),
         line.number_or_none("grad_norm")});
  });
  return out;
}

std::string lines_of(const Stored& s) {
  std::string out;
  const PresetRun& r = s.run;
  for (std::size_t i = 0; i < s.metrics.size(); ++i) {
    const std::vector<std::string> fields{s.preset,
                                          fmt::format("{}", r.seed),
                                          s.metrics[i].first,
                                          s.metrics[i].second,
                                          r.diverged ? "diverged" : number(r.measured[i]),
                                          number(r.baseline),
                                          fmt::format("{}", r.parameters),
                                          fmt::format("{}", r.updates),
                                          fmt::format("{}", r.whole),
                                          number(r.seconds),
                                          fmt::format("{}", r.threads),
                                          r.device,
                                          r.processor,
                                          r.kernels,
                                          r.version,
                                          r.commit,
                                          r.date,
                                          s.options,
                                          r.command,
                                          r.data};
    for (std::size_t f = 0; f < fields.size(); ++f) out += (f > 0 ? "," : "") + csv_field(fields[f]);
    out += '\n';
  }
  return out;
}

std::string lines_of(const std::string& preset, std::uint64_t seed, const std::vector<RunFolder::Row>& curve) {
  std::string out;
  // one more than most_points is what a thinned curve may have, and it is not thinned again
  const std::size_t every = curve.size() <= most_points + 1 ? 1 : (curve.size() + most_points - 1) / most_points;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if ((i + 1) % every != 0 && i + 1 != curve.size()) continue;
    out += fmt::format("{},{},{}\n", csv_field(preset), seed, curve[i].str());
  }
  return out;
}

/// A measure of a run, in its own unit; NaN if the preset does not ask for it.
double measured(const Preset& p, const PresetRun& run, const std::string& metric, const std::string& unit) {
  for (std::size_t m = 0; m < p.measures.size() && m < run.measured.size(); ++m)
    if (p.measures[m].metric == metric && p.measures[m].unit == unit) return run.measured[m];
  return nan;
}

/// The loss below which a run has solved its task.
double solved_limit(const Preset& p, const PresetRun& run) {
  return parse<double>(option_of(p, "--solved-below")).value_or(TrainOptions().solved_share) * run.baseline;
}

/// True if a stored curve has all validations; it was not thinned.
bool is_whole(const std::vector<RunFolder::Row>& curve) { return curve.size() <= most_points / 2; }

/// How the lowest validation loss of a run contradicts the rest that is stored of it; empty: it does not.
std::string contradiction(const Preset& p, const PresetRun& run) {
  const double best = measured(p, run, "best.valid_loss", "");
  const std::string has = fmt::format("best.valid_loss is {}, but ", best);
  const double limit = solved_limit(p, run);
  if (std::isinf(measured(p, run, "solved_at.step", "updates")) && best < limit)
    return fmt::format("{}by solved_at.step the loss was never below {}", has, limit);
  if (option_of(p, "--best") == "accuracy") return "";  // then it is not the lowest one
  double lowest = nan;
  for (const RunFolder::Row& row : run.curve) lowest = std::fmin(lowest, row.valid_loss);
  if (lowest < best * (1 - 1e-6) || (is_whole(run.curve) && best < lowest * (1 - 1e-6)))
    return fmt::format("{}the lowest one of its curve is {}", has, lowest);
  return "";
}

/// How the curve of a run contradicts its updates, or where it solved its task; empty: it does not.
std::string contradiction_of_curve(const Preset& p, const PresetRun& run) {
  if (p.task == "mechanism") return "";  // does not train
  if (run.curve.empty()) return run.diverged ? "" : "it has no curve";
  if (const auto end = run.curve.back().step; !run.diverged && end != run.updates)
    return fmt::format("it did {} updates, but its curve ends at {}", run.updates, end);
  const double solved = measured(p, run, "solved_at.step", "updates"), limit = solved_limit(p, run);
  if (std::isnan(solved)) return "";
  bool there = false;
  for (const RunFolder::Row& row : run.curve) {
    const auto step = static_cast<double>(row.step);
    there = there || step == solved;
    if (step <= solved && (row.valid_loss < limit) != (step == solved))
      return fmt::format("solved_at.step is {}, but its curve has {} at {}; below {} it is solved", solved,
                         row.valid_loss, row.step, limit);
  }
  if (std::isfinite(solved) && !there && (is_whole(run.curve) || solved > static_cast<double>(run.updates)))
    return fmt::format("solved_at.step is {}, where its curve has no validation", solved);
  return "";
}

std::string file_of(const std::string& folder, const std::string& table, const char* end) {
  return (fs::path(folder) / (table + end)).string();
}

}  // namespace

std::string numbers_file(const std::string& folder, const std::string& table) { return file_of(folder, table, ".csv"); }
std::string curves_file(const std::string& folder, const std::string& table) {
  return file_of(folder, table, "-curves.csv");
}

std::vector<std::string> foreign_numbers(const std::vector<PresetTable>& tables, const std::string& folder) {
  const std::string begin = fmt::format("{},{},{},", number_columns[0], number_columns[1], number_columns[2]);
  std::vector<std::string> out;
  for (const fs::path& paper : entries_of(folder)) {
    std::error_code error;
    if (!fs::is_directory(paper, error)) continue;
    for (const fs::path& file : entries_of(paper)) {
      const std::string name = (paper.filename() / file.stem()).string();
      if (file.extension() != ".csv" ||
          std::any_of(tables.begin(), tables.end(), [&](const PresetTable& t) { return t.name == name; }))
        continue;
      if (text_if_there(file.string()).starts_with(begin)) out.push_back(file.string());  // or it is none of ours
    }
  }
  return out;
}

bool has_numbers(const std::vector<PresetTable>& tables, const std::string& folder) {
  return std::any_of(tables.begin(), tables.end(),
                     [&](const PresetTable& t) { return fs::exists(numbers_file(folder, t.name)); }) ||
         !foreign_numbers(tables, folder).empty();
}

Report stored_report(const PresetTable& table, const std::string& folder, std::vector<std::string>& stale) {
  Report report{table, 1, 1, "", {}};
  const auto numbers = read_numbers(numbers_file(folder, table.name));
  const Curves curves = read_curves(curves_file(folder, table.name));
  for (const Preset& p : table.presets) {
    ReportRow row{p, {}};
    for (const Stored& s : numbers) {
      if (s.preset != p.name) continue;
      if (s.options != mark_of_preset(p)) {
        stale.push_back(fmt::format("{}, seed {}", p.name, s.run.seed));
        continue;
      }
      PresetRun run = s.run;
      run.measured.clear();  // in the order of the preset's measures, of which there may be others by now
      for (const Measure& m : p.measures) {
        const auto at = std::find(s.metrics.begin(), s.metrics.end(), std::pair(m.metric, m.unit));
        run.measured.push_back(
            at == s.metrics.end() ? nan : s.run.measured[static_cast<std::size_t>(at - s.metrics.begin())]);
      }
      if (const auto curve = curves.find({p.name, run.seed}); curve != curves.end()) run.curve = curve->second;
      row.runs.push_back(std::move(run));
    }
    report.seeds = std::max(report.seeds, static_cast<std::int64_t>(row.runs.size()));
    report.rows.push_back(std::move(row));
  }
  for (const Stored& s : numbers)
    if (std::none_of(table.presets.begin(), table.presets.end(), [&](const Preset& p) { return p.name == s.preset; }))
      stale.push_back(s.preset);
  add_means(report, table);
  return report;
}

std::vector<std::string> contradictions(const Report& report) {
  std::vector<std::string> out;
  for (const ReportRow& row : report.rows) {
    if (row.preset.task.empty()) continue;  // a mean over rows
    for (const PresetRun& run : row.runs)
      for (const std::string& what : {contradiction(row.preset, run), contradiction_of_curve(row.preset, run)})
        if (!what.empty()) out.push_back(fmt::format("{}, seed {}: {}", row.preset.name, run.seed, what));
  }
  return out;
}

void store(const PresetTable& table, const std::vector<ReportRow>& rows, const std::string& folder) {
  const std::string path = numbers_file(folder, table.name);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const auto alone = lock_of(path);
  std::vector<Stored> numbers = read_numbers(path);
  Curves curves = read_curves(curves_file(folder, table.name));
  for (const ReportRow& row : rows)
    for (const PresetRun& run : row.runs) {
      if ((!run.done() && !run.diverged) || row.preset.task.empty()) continue;
      Stored made{row.preset.name, mark_of_preset(row.preset), run, {}};
      for (const Measure& m : row.preset.measures) made.metrics.emplace_back(m.metric, m.unit);
      const auto same = std::find_if(numbers.begin(), numbers.end(), [&](const Stored& s) {
        return s.preset == row.preset.name && s.run.seed == run.seed;
      });
      if (same == numbers.end())
        numbers.push_back(std::move(made));
      else if (run.date.empty() && same->options == made.options && same->run.measured == run.measured)
        continue;  // a kept run that does not say where it was made: the file knows more
      else
        *same = std::move(made);
      curves[{row.preset.name, run.seed}] = run.curve;  // none takes the place of an earlier run's
    }
  if (numbers.empty()) return;
  const auto place = [&](const Stored& s) {  // in the order of the presets, unknown ones last
    const auto at =
        std::find_if(table.presets.begin(), table.presets.end(), [&](const Preset& p) { return p.name == s.preset; });
    return std::pair(at - table.presets.begin(), s.run.seed);
  };
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](const Stored& a, const Stored& b) { return place(a) < place(b); });
  std::string text = fmt::format("{}\n", fmt::join(number_columns, ",")),
              curve_text = fmt::format("{}\n", fmt::join(curve_columns, ","));
  for (const Stored& s : numbers) {
    text += lines_of(s);
    if (const auto curve = curves.find({s.preset, s.run.seed}); curve != curves.end())
      curve_text += lines_of(s.preset, s.run.seed, curve->second);
  }
  write_atomically(path, text);
  write_atomically(curves_file(folder, table.name), curve_text);
}

}  // namespace reel
