#include "tasks/runner/preset_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "backends/cpu/product_libraries.h"
#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/app/options_file.h"
#include "tasks/app/provenance.h"
#include "tasks/app/run_json.h"
#include "tasks/app/shared_options.h"
#include "tasks/app/success_map.h"
#include "tasks/io/output.h"
#include "tasks/runner/attempt.h"
#include "tasks/runner/program.h"
#include "tasks/runner/record.h"
#include "tasks/runner/step_cost.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t least = 20;  // updates

constexpr std::string_view reading[] = {"mnist", "charlm", "music", "babi", "speech"};  // these have --data

bool by_hand(const Preset& p) { return p.task == "mechanism"; }

/// Reads the results in run.json; false if the run is not finished.
bool read_record(const Preset& p, PresetRun& run) {
  const auto record = read_summary(run.folder);
  if (!record) return false;
  run.diverged = record->diverged_at_step >= 0;
  run.updates = record->steps;
  run.parameters = record->parameters;
  run.threads = record->threads;
  run.seconds = record->seconds;
  run.baseline = record->baseline;
  run.device = record->device;
  run.version = record->version;
  run.commit = record->commit;
  run.processor = record->processor;
  run.kernels = record->kernels;
  run.date = record->date;
  if (!record->finished) return false;
  run.measured.clear();
  for (const Measure& m : p.measures) run.measured.push_back(measured_in(record->json, m, p.epoch_updates));
  if (std::isnan(run.measured.front())) run.problem = fmt::format("the run has no {}", p.main().metric);
  return true;
}

/// The largest of the errors in the table of hand-written adding, and its draws.
void read_errors(const std::string& tsv, PresetRun& run) {
  std::istringstream in(tsv);
  std::string head, T, error;
  std::getline(in, head);
  double largest = nan;
  for (std::int64_t draws; in >> T >> error >> draws;) {
    largest = std::fmax(largest, parse<double>(error).value_or(nan));
    run.updates = draws;
  }
  run.measured.front() = largest;
}

/// The share of units that lost their gradient, over all lines of the table, and the draws of each.
void read_ruined(const std::string& tsv, PresetRun& run) {
  std::istringstream in(tsv);
  std::string head;
  std::getline(in, head);
  std::int64_t lost = 0, all = 0;
  for (std::int64_t T = 0, ruined = 0, draws = 0; in >> T >> ruined >> draws;) {
    lost += ruined;
    all += run.updates = draws;
  }
  run.measured.front() = all > 0 ? 100 * static_cast<double>(lost) / static_cast<double>(all) : nan;
}

/// Reads the results in the table of the hand-written solutions; false if there is none.
bool read_table(const Preset& p, PresetRun& run) {
  const std::string tsv = text_if_there(run.folder + "/table.tsv");
  if (tsv.empty()) return false;
  if (p.main().metric == "largest_error") {
    read_errors(tsv, run);
  } else if (p.main().metric == "ruined") {
    read_ruined(tsv, run);
  } else {
    SuccessMap map;
    map.add(tsv);
    run.updates = map.draws_of_a_field();
    run.measured.front() =
        map.draws() > 0 ? 100 * static_cast<double>(map.right()) / static_cast<double>(map.draws()) : nan;
  }
  run.baseline = run.seconds = nan;
  if (std::isnan(run.measured.front())) run.problem = fmt::format("the table has no {}", p.main().metric);
  return true;
}

/// Reads the results of a run; true if it is not to be run again: it is finished, or would diverge again.
bool is_kept(const Preset& p, PresetRun& run) {
  return by_hand(p) ? read_table(p, run) : read_record(p, run) || run.diverged;
}

/// Why an earlier call's run diverged, in its program's words.
std::string words_of_divergence(const PresetRun& run) {
  std::string said;
  try {
    said = last_line(text_if_there(run.folder + "/stderr.txt"));
  } catch (const Error&) {
  }
  return said.empty() ? fmt::format("diverged after {} updates", run.updates) : said;
}

/// Takes the validations of a run. If they cannot be read, that is its problem, unless it has another one: what is kept
/// of it would lack its curve.
void take_curve(PresetRun& run) {
  try {
    run.curve = RunFolder::view(run.folder).rows();
  } catch (const Error& e) {
    run.curve.clear();
    if (run.done()) run.problem = e.what();
  }
}

/// The size of the whole preset, in updates or draws. Asks the program, which knows the size of the data. Throws Error
/// with the program's words if it cannot start.
std::int64_t whole_of(const Preset& p, const std::vector<std::string>& typed,
                      const std::function<bool(const std::string&)>& stop) {
  const std::string said = dry_run(p.task, typed, [&] { return stop("looking at the model"); });
  return by_hand(p) ? number_behind(said, "settings, ") : number_behind(said, "\nupdates ");
}

/// The options beside those of the preset; `whole` is its size, which a budget is a share of.
std::vector<std::string> further_options(const Preset& p, const PresetRunOptions& o, std::int64_t whole) {
  std::vector<std::string> more;
  const std::int64_t updates = planned_updates(o, whole);
  if (o.budget != 1) {
    if (by_hand(p)) {
      more.insert(more.end(), {"--draws", fmt::format("{}", updates)});
    } else {
      if (!option_of(p, "--epochs").empty()) more.insert(more.end(), {"--epochs", "0"});
      more.insert(more.end(), {"--steps", fmt::format("{}", updates)});
    }
  }
  more.insert(more.end(), {"--seed", fmt::format("{}", o.seed)});
  if (o.threads > 0) more.insert(more.end(), {"--threads", fmt::format("{}", o.threads)});
  if (!o.device.empty()) more.insert(more.end(), {"--device", o.device});
  if (o.stop_below > 0 && !by_hand(p)) more.insert(more.end(), {"--stop-below", fmt::format("{}", o.stop_below)});
  return more;
}

/// The folder of data sets that the preset's program would read, as it would choose it.
std::string data_now(const Preset& p, const PresetRunOptions& o) {
  if (!reads_files(p)) return "";
  if (!o.data.empty()) return o.data;
  const std::string own = option_of(p, "--data");
  return own.empty() ? default_data() : own;
}

/// --data in the config.toml of a run; empty if there is none, or the file cannot be read, which others tell.
std::string data_of_config(const std::string& folder) {
  const std::string config = folder + "/config.toml";
  std::error_code error;
  if (!fs::exists(config, error)) return "";
  try {
    for (const FileValue& value : read_options_file(config))
      if (value.name == "data") return value.text;
  } catch (const Error&) {
  }
  return "";
}

/// Sets a run's data and command, and the folder that is named after its options without the data: folders of older
/// versions keep their names.
void name_run(PresetRun& run, const Preset& p, const PresetRunOptions& o, const std::vector<std::string>& more) {
  run.data = data_now(p, o);
  run.command = fmt::format("{} --preset {} {}", p.task, p.name, fmt::join(more, " "));
  std::vector<std::string> all = p.options;
  all.insert(all.end(), more.begin(), more.end());
  all.push_back(p.task);
  run.folder = fmt::format("{}/{}-s{}-{}", o.root, p.name, o.seed, mark_of(all));
}

}  // namespace

bool failed(const Preset& p, const PresetRun& run) {
  const bool expected = std::ranges::any_of(p.measures, [](const Measure& m) { return m.expect.diverges; });
  return !run.problem.empty() && !(run.diverged && expected);
}

PresetRun planned_run(const Preset& p, const PresetRunOptions& o, std::int64_t whole) {
  PresetRun run;
  run.seed = o.seed;
  name_run(run, p, o, further_options(p, o, whole));
  return run;
}

std::int64_t planned_updates(const PresetRunOptions& o, std::int64_t whole) {
  if (o.budget == 1) return whole;
  return std::max<std::int64_t>(least, std::llround(o.budget * static_cast<double>(whole)));
}

double share_left(const Preset& p, const PresetRunOptions& o, std::int64_t whole) {
  PresetRun run = planned_run(p, o, whole);
  std::error_code error;
  try {
    if (!fs::exists(run.folder + "/lock", error) && is_kept(p, run)) return 0;
  } catch (const Error&) {  // the run itself will say so
    return 1;
  }
  return share_left(run.folder, planned_updates(o, whole));
}

std::string other_data(const PresetRun& planned, const std::string& had, const std::string& where) {
  if (had.empty() || planned.data.empty() || had == planned.data) return "";
  std::error_code error;
  const auto place = [&](const std::string& path) { return fs::weakly_canonical(path, error); };
  if (place(had) == place(planned.data)) return "";
  return fmt::format(
      "{}: has a run of the data in {}, got {}. Hint: --data {}, or other folders for --runs and --results", where, had,
      planned.data, shell_path(had));
}

PresetRun run_preset(const Preset& p, const PresetRunOptions& o,
                     const std::function<bool(const std::string&)>& waiting) {
  PresetRun run;
  run.seed = o.seed;
  run.measured.assign(p.measures.size(), nan);
  run.baseline = nan;
  std::vector<std::string> typed{"--preset", p.name};
  if (!o.data.empty() && reads_files(p))
    typed.push_back("--data=" + o.data);  // with =, because a name may start with -

  bool wished = false;
  const auto stop = [&](const std::string& line) { return wished = waiting(line) || wished; };
  try {
    run.whole = whole_of(p, typed, stop);
  } catch (const Error& e) {
    run.interrupted = wished;
    if (!wished) run.problem = e.what();
    return run;
  }
  const std::vector<std::string> more = further_options(p, o, run.whole);
  name_run(run, p, o, more);
  const std::string had = data_of_config(run.folder);
  run.problem = other_data(run, had, run.folder);
  if (!run.problem.empty()) {
    run.folder.clear();  // its pictures are not of these data
    return run;
  }
  if (reads_files(p) && !had.empty()) run.data = had;  // the same place, perhaps named otherwise

  typed.insert(typed.end(), more.begin(), more.end());
  const auto read = [&] { return by_hand(p) ? read_table(p, run) : read_record(p, run); };
  const auto unfinish = [&] {  // without its record the run does not count as kept, and goes on next time
    std::error_code error;
    if (!by_hand(p)) fs::remove(run.folder + "/run.json", error);
    run.measured.assign(p.measures.size(), nan);
    run.baseline = nan;
  };
  const std::string out = by_hand(p) ? run.folder + "/table.tsv" : run.folder;
  const Attempted a =
      attempt({p.task, typed, {}, run.folder, out, [&] { return is_kept(p, run); }, read, unfinish}, stop);
  using End = Attempted::End;
  run.kept = a.end == End::kept;
  run.interrupted = a.end == End::interrupted;
  if (a.end == End::failed || a.end == End::taken) run.problem = a.problem;
  if (run.kept && run.diverged) run.problem = words_of_divergence(run);
  if (by_hand(p) && a.end == End::done) {  // its table does not say where it was made
    run.seconds = a.seconds;
    run.device = "cpu";
    run.version = version();
    run.commit = commit();
    run.processor = processor();
    run.kernels = cpu::product_libraries();
    run.date = utc_now();
  }
  if (!by_hand(p)) take_curve(run);
  return run;
}

bool reads_files(const Preset& p) {
  return std::find(std::begin(reading), std::end(reading), p.task) != std::end(reading);
}

std::string option_of(const Preset& p, const std::string& name) {
  std::string out;  // of several the last one holds
  for (std::size_t i = 0; i < p.options.size(); ++i) {
    if (p.options[i].starts_with(name + "=")) out = p.options[i].substr(name.size() + 1);
    if (p.options[i] == name && i + 1 < p.options.size()) out = p.options[i + 1];
  }
  return out;
}

std::string mark_of_preset(const Preset& p) {
  std::vector<std::string> words = p.options;
  words.push_back(p.task);
  return mark_of(words);
}

}  // namespace reel
