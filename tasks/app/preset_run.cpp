#include "tasks/app/preset_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/success_map.h"
#include "tasks/io/files.h"
#include "tasks/io/lock.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t least = 20;  // updates

constexpr std::string_view reading[] = {"mnist", "charlm", "music", "babi", "speech"};  // these have --data

bool by_hand(const Preset& p) { return p.task == "mechanism"; }

std::string program_of(const std::string& task) {
  std::error_code error;
  return (fs::read_symlink("/proc/self/exe", error).parent_path() / task).string();
}

/// A short hash of a list of words (FNV-1a).
std::string mark_of(const std::vector<std::string>& words) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::string& word : words)
    for (const char c : word + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash ^ hash >> 32));
}

std::string text_of(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error) throw Error(path, "cannot be looked up: " + error.message());
  return there ? read_file(path) : "";
}

/// The last non-empty line of a text.
std::string last_line(const std::string& text) {
  std::istringstream in(text);
  std::string line, last;
  while (std::getline(in, line))
    if (!line.empty()) last = line;
  return last;
}

/// The integer after `word` in a text; 0 if there is none.
std::int64_t number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.rfind(word);
  if (at == std::string::npos) return 0;
  const std::size_t first = at + word.size();
  return parse<std::int64_t>(std::string_view(text).substr(first, text.find_first_not_of("0123456789", first) - first))
      .value_or(0);
}

double number_of(const nlohmann::json& json, const std::string& key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>() : nan;
}

/// Reads the results in run.json; false if the run is not finished.
bool read_record(const Preset& p, PresetRun& run) {
  const std::string text = text_of(run.folder + "/run.json");
  if (text.empty()) return false;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.value("finished", false)) return false;
  run.updates = json.value("steps", std::int64_t{0});
  run.parameters = json.value("parameters", std::int64_t{-1});
  run.threads = json.value("threads", 0);
  run.seconds = number_of(json, "seconds");
  run.baseline = number_of(json, "baseline");
  if (p.metric == "epoch_seconds")
    run.measured = number_of(json, "update_seconds") * p.epoch_updates;
  else if (p.metric.starts_with("test."))
    run.measured = json.contains("test") ? number_of(json["test"], p.metric.substr(5)) : nan;
  else
    run.measured = number_of(json, p.metric);
  if (p.unit == "%") run.measured *= 100;
  if (std::isnan(run.measured)) run.problem = fmt::format("the run has no {}", p.metric);
  return true;
}

/// Reads the results in the table of the hand-written solutions; false if there is none.
bool read_table(PresetRun& run) {
  const std::string tsv = text_of(run.folder + "/table.tsv");
  if (tsv.empty()) return false;
  SuccessMap map;
  map.add(tsv);
  run.updates = map.draws_of_a_field();
  run.measured = map.draws() > 0 ? 100 * static_cast<double>(map.right()) / static_cast<double>(map.draws()) : nan;
  run.baseline = run.seconds = nan;
  if (map.draws() == 0) run.problem = "the table is empty";
  return true;
}

/// The program's own words for why it ended.
std::string problem_of(int code, const std::string& folder) {
  const std::string said = last_line(text_of(folder + "/stderr.txt"));
  return said.empty() ? fmt::format("ended with code {}", code) : said;
}

/// The size of the whole preset, in updates or draws. Asks the program, which knows the size of the data. Throws Error
/// with the program's words if it cannot start.
std::int64_t whole_of(const Preset& p, const std::string& program, const std::vector<std::string>& typed,
                      const std::function<bool(const std::string&)>& stop) {
  std::vector<std::string> arguments{program};
  arguments.insert(arguments.end(), typed.begin(), typed.end());
  arguments.emplace_back("--dry-run");
  const Spawned look = run_child(arguments, "", [&] { return stop("looking at the model"); });
  if (look.code == could_not_start) throw Error(program, "is not there or could not be started");
  const std::string complaint = last_line(look.err);
  if (look.code != 0)
    throw Error(complaint.empty() ? fmt::format("{} ended with code {}", p.task, look.code) : complaint);
  return by_hand(p) ? number_behind(look.out, "settings, ") : number_behind(look.out, "\nupdates ");
}

}  // namespace

PresetRun run_preset(const Preset& p, const PresetRunOptions& o,
                     const std::function<bool(const std::string&)>& waiting) {
  PresetRun run;
  run.measured = run.baseline = nan;
  const std::string program = program_of(p.task);
  std::vector<std::string> typed{"--preset", p.name}, more;
  const bool reads_files = std::find(std::begin(reading), std::end(reading), p.task) != std::end(reading);
  if (!o.data.empty() && reads_files) typed.push_back("--data=" + o.data);  // with =, because a name may start with -

  bool wished = false;
  const auto stop = [&](const std::string& line) { return wished = waiting(line) || wished; };
  try {
    run.whole = whole_of(p, program, typed, stop);
  } catch (const Error& e) {
    run.interrupted = wished;
    if (!wished) run.problem = e.what();
    return run;
  }
  const auto share = static_cast<std::int64_t>(std::llround(o.budget * static_cast<double>(run.whole)));
  if (o.budget != 1) {
    if (by_hand(p)) {
      more.insert(more.end(), {"--draws", fmt::format("{}", std::max(least, share))});
    } else {
      if (std::find(p.options.begin(), p.options.end(), "--epochs") != p.options.end())
        more.insert(more.end(), {"--epochs", "0"});
      more.insert(more.end(), {"--steps", fmt::format("{}", std::max(least, share))});
    }
  }
  more.insert(more.end(), {"--seed", fmt::format("{}", o.seed)});
  if (o.threads > 0) more.insert(more.end(), {"--threads", fmt::format("{}", o.threads)});
  if (!o.device.empty()) more.insert(more.end(), {"--device", o.device});
  std::vector<std::string> all = p.options;
  all.insert(all.end(), more.begin(), more.end());
  all.push_back(p.task);
  run.folder = fmt::format("{}/{}-s{}-{}", o.root, p.name, o.seed, mark_of(all));

  const auto read = [&] { return by_hand(p) ? read_table(run) : read_record(p, run); };
  run.kept = read();
  if (run.kept) return run;
  std::error_code error;
  fs::create_directories(run.folder, error);
  std::optional<Lock> lock;  // the program locks its folder itself; this lock is for what we do around it
  try {
    lock.emplace(run.folder + "/reproduce.lock", run.folder);
  } catch (const Error& e) {
    run.problem = e.what();
    return run;
  }
  run.kept = read();  // another process may have finished it by now
  if (run.kept) return run;
  std::vector<std::string> arguments{program};
  const bool begun =
      fs::exists(run.folder + "/config.toml", error) && fs::exists(run.folder + "/checkpoint.safetensors", error);
  if (begun) {
    arguments.push_back("--resume=" + run.folder);
  } else {
    arguments.insert(arguments.end(), typed.begin(), typed.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back("--out=" + (by_hand(p) ? run.folder + "/table.tsv" : run.folder));
  }
  const auto start = std::chrono::steady_clock::now();
  const int end = run_logged(arguments, run.folder + "/stdout.txt", run.folder + "/stderr.txt",
                             [&] { return stop(last_line(text_of(run.folder + "/stderr.txt"))); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (end == 0 && read()) {
    if (by_hand(p)) run.seconds = took.count();
    return run;
  }
  // All numbers may be there, but not all pictures. Without its record the run does not count as kept, and continues
  // next time.
  PresetRun ended = run;
  if (end != 0 && !by_hand(p) && read_record(p, ended)) fs::remove(run.folder + "/run.json", error);
  run.interrupted = wished || end == Interrupt::exit_code;
  if (!run.interrupted) run.problem = end == 0 ? "the program left no result" : problem_of(end, run.folder);
  return run;
}

}  // namespace reel
