#include "tasks/app/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/compile.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/app/options.h"
#include "tasks/app/options_file.h"
#include "tasks/app/run_json.h"
#include "tasks/io/files.h"
#include "tasks/io/output.h"
#include "tasks/training/safetensors.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr const char* config_file = "config.toml";
constexpr const char* metrics_file = "metrics.csv";
constexpr const char* checkpoint_file = "checkpoint.safetensors";
constexpr const char* best_file = "best.safetensors";
constexpr const char* run_file = "run.json";
constexpr std::string_view preset_mark = "# preset: ";  // in the first line of config.toml
constexpr std::string_view python_mark = "# Made by Python's reel.Run\n";

constexpr std::string_view run_files[] = {config_file,  metrics_file, run_file,          "model.json",    "data.json",
                                          "table.json", "split.csv",  "vocabulary.json", checkpoint_file, best_file,
                                          "curve.svg",  "curve.png",  "curve.pdf",       "report.html"};

constexpr std::uint64_t most_metrics = 1 << 30, most_text = 1 << 24, longest_row = 1 << 12;  // bytes

[[noreturn]] void cannot_make(const std::string& path, const std::error_code& error) {
  throw Error(path, "cannot be made: " + error.message());
}

/// Creates runs/TASK-CELL-YYYYMMDD-HHMMSS, with a number appended if another run took that name in the same second.
std::string make_dated(const std::string& task, const std::string& cell) {
  std::error_code error;
  fs::create_directories("runs", error);
  if (error) cannot_make("runs", error);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const std::string name = fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", task, cell, local);
  for (int i = 1;; ++i) {
    std::string path = i == 1 ? name : fmt::format("{}-{}", name, i);
    if (fs::create_directory(path, error)) return path;
    if (error) cannot_make(path, error);
  }
}

std::string text_of(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

std::string header() { return fmt::format("{}\n", RunFolder::columns); }
std::string line_of(const RunFolder::Row& row) { return row.str() + "\n"; }

/// True for the names of files that runs write: the folder may also have files of the user.
bool is_of_run(std::string_view name) {
  constexpr std::string_view endings[] = {".safetensors", ".svg", ".png", ".pdf", ".wav"};
  return is_run_file(name) || name == "sample.txt" || name == "confusion.tsv" ||
         std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Takes the next field off a line; false if there is none or it is not a number.
template <class T>
bool next(std::string_view& line, bool& more, T& value) {
  if (!more) return false;
  const std::size_t comma = line.find(',');
  const std::string_view field = line.substr(0, comma);
  more = comma != std::string_view::npos;
  line.remove_prefix(more ? comma + 1 : line.size());
  if constexpr (std::is_same_v<T, double>) {
    value = std::numeric_limits<double>::quiet_NaN();
    if (field.empty()) return true;
  }
  const std::optional<T> number = parse<T>(field);
  value = number.value_or(value);
  return number.has_value();
}

std::optional<RunFolder::Row> row_of(std::string_view line) {
  RunFolder::Row r;
  bool more = true;
  const bool good = next(line, more, r.step) && next(line, more, r.examples) && next(line, more, r.seconds) &&
                    next(line, more, r.train_loss) && next(line, more, r.valid_loss) && next(line, more, r.accuracy) &&
                    next(line, more, r.grad_norm);
  return good && !more ? std::optional(r) : std::nullopt;
}

}  // namespace

bool is_run_file(std::string_view name) { return std::ranges::find(run_files, name) != std::end(run_files); }

std::string RunFolder::Row::str() const {
  return fmt::format("{},{},{},{},{},{},{}", step, examples, text_of(seconds), text_of(train_loss), text_of(valid_loss),
                     text_of(accuracy), text_of(grad_norm));
}

std::string task_in(const std::string& folder) {
  for (const char* name : {"model.json", run_file}) {
    const std::string file = fs::path(folder) / name;
    if (std::error_code error; !fs::is_regular_file(file, error)) continue;
    const auto json = nlohmann::json::parse(read_file(file, most_text), nullptr, false);
    if (!json.is_object() || !json.contains("task") || !json["task"].is_string()) continue;
    return json["task"];
  }
  return "";
}

namespace {
/// True for a run of Python: its config.toml begins with a mark; before there was one, its model.json names no task.
bool is_of_python(const std::string& folder) {
  const auto is_file = [&](const std::string& name) {
    std::error_code error;
    return fs::is_regular_file(fs::path(folder) / name, error);
  };
  if (is_file(config_file) && read_file(fs::path(folder) / config_file, most_text).starts_with(python_mark))
    return true;
  return is_file("model.json") && task_in(folder).empty();
}
}  // namespace

void require_task(const std::string& folder, const std::string& task) {
  const std::string own = task_in(folder);
  if (!own.empty() && own != task)
    throw Usage(fmt::format("--resume {}: this is a run of {}, not of {}. Hint: {} --resume {}", folder, own, task, own,
                            shell_path(folder)));
  if (is_of_python(folder))
    throw Usage(
        fmt::format("--resume {}: this is a run of Python's reel.train, not of {}. Hint: reel.train goes on "
                    "with reel.Run(\"{}\").model()",
                    folder, task, folder));
}

RunFolder RunFolder::create(const std::string& out, const std::string& task, const std::string& cell) {
  if (!out.empty()) {
    std::error_code error;
    fs::create_directories(out, error);
    if (error) cannot_make(out, error);
  }
  RunFolder folder(out.empty() ? make_dated(task, cell) : out);
  folder.lock();
  const bool config = folder.has(config_file);
  const std::string hint = "Hint: another folder for --out";
  if (is_of_python(folder.path())) throw Error(out, fmt::format("holds a run of Python's reel.train. {}.", hint));
  if (const std::string results = folder.results(); !results.empty()) {
    if (!folder.has(checkpoint_file))
      throw Error(out, fmt::format("holds {}, but no checkpoint. {}, or delete this one.", results, hint));
    if (!config)
      throw Error(out, fmt::format("holds the checkpoint of a run, but no config.toml. {}, or put that back and "
                                   "--resume {}.",
                                   hint, shell_path(out)));
    throw Error(out, fmt::format("holds a run already. {}, or --resume {}.", hint, shell_path(out)));
  }
  if (config && !folder.has(metrics_file))  // every run of ours creates that first
    throw Error(out, fmt::format("holds a config.toml, but no run. Hint: another folder for --out, or --resume {} to "
                                 "run what it says.",
                                 shell_path(out)));
  if (config) folder.notes_.push_back(out + ": held a run that ended before its first update; it starts anew");
  fs::remove(folder.file(checkpoint_file));
  write_atomically(folder.file(metrics_file),
                   header());  // if the folder cannot be written, this fails now, not after an hour
  return folder;
}

RunFolder RunFolder::open(const std::string& path, std::int64_t steps) {
  RunFolder folder = view(path);
  folder.lock();
  remove_unfinished(path, is_of_run);
  const std::int64_t done = folder.updates_done().value_or(0);
  if (done > steps)
    throw Usage(fmt::format("--steps: the run in {} has done {} updates, got {}. Hint: --steps {}, or more", path, done,
                            steps, done));
  if (!folder.has(checkpoint_file)) {
    if (!folder.rows().empty())
      throw Error(path, "cannot be resumed: metrics.csv has rows, but there is no checkpoint.safetensors");
    folder.notes_.push_back(path + ": there is no checkpoint yet; the run starts from its config.toml");
    return folder;
  }
  const std::string rows = folder.has(metrics_file) ? read_file(folder.file(metrics_file), most_metrics) : "";
  (void)rows_in(folder.file(metrics_file), rows);  // a damaged row is an error, before any note
  if (rows.empty()) {
    folder.notes_.push_back(
        folder.file(metrics_file) +
        ": is gone or empty; the rows of earlier steps are missing, and --patience counts from here");
  } else if (!rows.ends_with('\n')) {
    // a crash may cut off the row of a validation after the checkpoint, which is made again
    const std::string_view last = std::string_view(rows).substr(rows.rfind('\n') + 1);
    const auto step = parse<std::int64_t>(last.substr(0, last.find(',')));
    if (!step || *step <= done)
      folder.notes_.push_back(fmt::format("{}:{}: is not a whole row; it is skipped", folder.file(metrics_file),
                                          1 + std::count(rows.begin(), rows.end(), '\n')));
  }
  if (!folder.has(best_file)) {
    if (const auto best = folder.lost_best())
      folder.notes_.push_back(
          fmt::format("{}: is gone; the best model counts from here{}", folder.file(best_file), *best));
  }
  return folder;
}

std::optional<std::string> RunFolder::lost_best() const {
  if (has(run_file)) {
    const auto json = nlohmann::json::parse(read_file(file(run_file), most_text), nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto best = json.value("best", nlohmann::json::object());
    const auto number = [&](const char* key) { return best.contains(key) && best[key].is_number(); };
    if (!best.is_object() || !number("step") || !number("valid_loss")) return std::nullopt;
    return fmt::format(" (it was update {}, {:.4g})", best["step"].get<std::int64_t>(),
                       best["valid_loss"].get<double>());
  }
  // The first validation is the best one so far. Versions without the key wrote such a file for few tasks only.
  if (rows().empty() || !load_safetensors(file(checkpoint_file)).metadata.contains("shards")) return std::nullopt;
  return "";
}

RunFolder RunFolder::view(const std::string& path) {
  RunFolder folder(path);
  std::error_code error;
  if (!fs::exists(path, error)) throw Error(path, "does not exist");
  if (!folder.has(config_file))
    throw Error(path, std::string("is not the folder of a run: no config.toml") +
                          (fs::is_directory(path + "/runs", error) ? ". Hint: " + path + "/runs/*" : ""));
  return folder;
}

RunFolder RunFolder::of_rank_0(const std::string& path) {
  RunFolder folder(path);
  folder.writes_ = false;
  return folder;
}

bool RunFolder::has(const std::string& name) const {
  std::error_code error;
  const bool there = fs::exists(file(name), error);
  if (error) throw Error(file(name), "cannot be looked up: " + error.message());  // whether it exists is unknown
  return there;
}

std::optional<std::int64_t> RunFolder::updates_done() const {
  if (!has(checkpoint_file)) return 0;
  try {
    const auto metadata = load_safetensors(file(checkpoint_file)).metadata;
    const auto step = metadata.find("step");
    return step == metadata.end() ? std::nullopt : parse<std::int64_t>(step->second);
  } catch (const Error&) {
    return std::nullopt;  // damaged
  }
}

std::string RunFolder::results() const {
  if (updates_done() != 0) return checkpoint_file;  // what is damaged is not ours to delete
  if (!rows().empty()) return "rows of a run in metrics.csv";
  if (has(best_file)) return fmt::format("the {} of a run", best_file);
  if (has(checkpoint_file) || !has(run_file)) return "";  // a run that diverged keeps no update
  const auto json = nlohmann::json::parse(read_file(file(run_file), most_text), nullptr, false);
  const bool none = json.is_object() && json.contains("steps") && json["steps"] == 0;
  return none ? "" : fmt::format("the {} of a run", run_file);
}

void RunFolder::lock() {
  lock_ = std::make_unique<Lock>(file("lock"), path_);
  if (!lock_->locked())
    notes_.push_back(path_ + ": this file system has no locks; see that no other program writes to the folder");
}

void RunFolder::require_held() const {
  if (lock_ && !lock_->held())
    throw Error(path_,
                "is not the folder of this run any more: it, or the file lock in it, was moved, removed or replaced. "
                "Hint: --resume with the folder's new path goes on from the last checkpoint");
}

std::string RunFolder::file(const std::string& name) const { return fs::path(path_) / name; }

void RunFolder::add_row(const Row& row) {
  if (!writes_) return;
  require_held();
  FileHandle csv(file(metrics_file), O_RDWR | O_CREAT, "written");
  const off_t size = lseek(csv.get(), 0, SEEK_END);
  if (size < 0) csv.fail("written");
  std::string end = read_end(file(metrics_file), longest_row);  // the rest is not read again for each row
  if (end.find('\n') == end.npos) end = read_end(file(metrics_file), static_cast<std::uint64_t>(size));
  // a line without a newline is what a crash left behind
  const off_t whole = size - static_cast<off_t>(end.size() - (end.rfind('\n') + 1));
  const std::string line = (whole == 0 ? header() : "") + line_of(row);
  if (ftruncate(csv.get(), whole) != 0) csv.fail("written");
  if (lseek(csv.get(), whole, SEEK_SET) < 0) csv.fail("written");
  try {
    csv.write(line);
  } catch (...) {
    (void)!ftruncate(csv.get(), whole);  // removes the part that fitted on a full disk
    throw;
  }
  csv.close();
}

std::vector<RunFolder::Row> RunFolder::rows() const {
  if (!has(metrics_file)) return {};
  const std::string path = file(metrics_file);
  return rows_in(path, read_file(path, most_metrics));
}

std::vector<RunFolder::Row> RunFolder::rows_in(const std::string& path, std::string_view text) {
  std::vector<Row> rows;
  std::size_t number = 0;
  for (std::size_t first = 0, end; (end = text.find('\n', first)) != text.npos; first = end + 1) {
    const std::string_view line = text.substr(first, end + 1 - first);
    if (++number == 1 && line == header()) continue;
    const std::optional<Row> row = row_of(line.substr(0, line.size() - 1));
    if (!row || number == 1)
      throw Error(fmt::format("{}:{}", path, number),
                  "is not a line of metrics. Hint: delete this file; the run can be resumed without it");
    rows.push_back(*row);
  }
  return rows;
}

void RunFolder::keep_rows_up_to(std::int64_t step) {
  if (!writes_) return;
  require_held();
  std::string text = header();
  for (const Row& row : rows())
    if (row.step <= step) text += line_of(row);
  write_atomically(file(metrics_file), text);
}

void RunFolder::write_config(const std::string& toml, const std::string& preset) {
  require_held();
  // a comment: config.toml has all options, so that it does not depend on a preset that may change or go
  const bool named = !preset.empty() && one_line(preset) == preset && survives_toml(preset);
  write_atomically(file(config_file), named ? fmt::format("{}{}\n{}", preset_mark, preset, toml) : toml);
}

std::string RunFolder::preset() const {
  const std::string config = read_file(file(config_file), most_text);
  if (config.starts_with(preset_mark)) return config.substr(preset_mark.size(), config.find('\n') - preset_mark.size());
  if (!has(run_file)) return "";
  const auto json = nlohmann::json::parse(read_file(file(run_file), most_text), nullptr, false);
  if (!json.is_object() || !json.contains("preset") || !json["preset"].is_string()) return "";
  return json["preset"];
}

void RunFolder::write_run_json(const RunRecord& r) {
  if (!writes_) return;
  require_held();
  write_atomically(file(run_file), run_json(r).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void RunFolder::update_run_json(RunRecord& r, bool trained) {
  if (!writes_) return;
  require_held();
  const auto earlier = has(run_file)
                           ? nlohmann::ordered_json::parse(read_file(file(run_file), most_text), nullptr, false)
                           : nlohmann::ordered_json();
  if (!earlier.is_object() || !complete(r, earlier, trained)) return write_run_json(r);
  std::error_code error;  // a new time says to sweep that this session came to its end
  fs::last_write_time(file(run_file), fs::file_time_type::clock::now(), error);
}

}  // namespace reel
