// What a run leaves on disk: config.toml, model.json, metrics.csv, run.json, data.json, curve.svg, report.html,
// checkpoint.safetensors, and the parameters of the best validation in best.safetensors. Every file is complete at
// every moment, whenever the process dies, but for a last row of metrics.csv, which is skipped. One program at a time
// writes there; meanwhile the file "lock" names it.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasks/io/lock.h"

namespace reel {

/// The contents of run.json; an unknown number is NaN here and null there.
struct RunRecord {
  std::string task, cell;
  std::int64_t parameters = 0;
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  double baseline = 0, train_loss = 0, valid_loss = 0, accuracy = 0;
  double seconds = 0, steps_per_second = 0;
  double update_seconds = 0;  // per update, without validations and files, and without the first update of the process
  std::string device;
  int threads = 1, ranks = 1;
  bool finished = false;
  /// The update with the best validation, whose parameters are in best.safetensors; -1: none is there.
  std::int64_t best_step = -1;
  double best_loss = 0;  // the validation loss after it
  double best_accuracy = std::numeric_limits<double>::quiet_NaN();
  double solved_share = 0;  // of the baseline: a validation loss below it counts as solved; 0: not asked
  /// The first validation with a loss below that; step -1: none yet.
  std::int64_t solved_step = -1, solved_examples = 0;
  double solved_seconds = 0;
  /// For a task with a test set: the results with these parameters, by name ("loss", "accuracy", ...).
  std::vector<std::pair<std::string, double>> test = {};
  std::int64_t diverged_at_step = -1;     // -1: it did not diverge
  std::string stopped_by = {};            // the option that ended it before its last update; empty: none
  std::string command = {};               // of the process that writes the record; empty: not known
  std::string preset = {};                // that the run was started with; empty: none
  std::string kernels = {};               // of the libraries that compute its products; empty: not known
  std::vector<std::string> plugins = {};  // absolute paths
};

/// The task of the run in a folder, of which model.json is there from its start; empty if no file says.
std::string task_in(const std::string& folder);
/// Throws Usage if the folder is that of a run of another task, or of none, as far as it says.
void require_task(const std::string& folder, const std::string& task);

/// True for the fixed names of a run's files, of which the lock, results of a task and pictures but the curve are none.
bool is_run_file(std::string_view name);

class RunFolder {
 public:
  /// A line of metrics.csv; an unknown number is NaN here and an empty field there.
  struct Row {
    std::int64_t step = 0, examples = 0;
    double seconds = 0, train_loss = 0, valid_loss = 0, accuracy = 0, grad_norm = 0;
    bool operator==(const Row&) const = default;
    /// Its fields, with commas between.
    std::string str() const;
  };
  /// The names of the fields, with commas between.
  static constexpr std::string_view columns = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm";

  /// Creates the folder `out`, or runs/TASK-CELL-DATE-TIME if that is empty. A run that died before its first update
  /// does not count as one. Throws Error if the folder cannot be written, holds a run, or another program is writing to
  /// it.
  static RunFolder create(const std::string& out, const std::string& task, const std::string& cell);
  /// Opens the folder of a run to resume it, from its start if there is no checkpoint yet. Throws Error if something in
  /// it is missing, or another program is writing to it; Usage if the run has done more updates than `steps`.
  static RunFolder open(const std::string& folder, std::int64_t steps = std::numeric_limits<std::int64_t>::max());
  /// Opens the folder of a run for reading only; throws Error if it holds none.
  static RunFolder view(const std::string& folder);

  /// The same for the other ranks of a run: what rank 0 writes there is not written again.
  static RunFolder of_rank_0(const std::string& folder);

  const std::string& path() const { return path_; }
  /// What the user should know about it, one line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// The path of a file in the folder.
  std::string file(const std::string& name) const;
  /// Throws Error if the folder is no longer the one that was locked: before anything is written there.
  void require_held() const;

  /// The updates of the checkpoint: 0 if there is none, nothing if it is damaged.
  std::optional<std::int64_t> updates_done() const;
  /// Appends a row to metrics.csv; it is on disk when this returns.
  void add_row(const Row& row);
  /// The rows of metrics.csv, without an incomplete last one; none if the file is gone. Throws Error with the line
  /// number of a damaged row.
  std::vector<Row> rows() const;
  /// The same from the text of such a file.
  static std::vector<Row> rows_in(const std::string& path, std::string_view text);
  /// Removes the rows after a step, so that a resumed run writes them again.
  void keep_rows_up_to(std::int64_t step);

  /// Writes config.toml: the options, and in a comment the preset that the run was started with, if there is one.
  void write_config(const std::string& toml, const std::string& preset = "");
  /// That preset; in folders of older versions it is in run.json only. Empty: none, or it is not known.
  std::string preset() const;
  void write_run_json(const RunRecord& record);
  /// The same, but what this session has not measured is completed from that file, which stays as it is if this session
  /// has `trained` nothing and the run was finished.
  void update_run_json(RunRecord& record, bool trained);

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  bool has(const std::string& name) const;
  /// What shows that a run has made updates here; empty if none has. A checkpoint of the very start says no more than
  /// config.toml.
  std::string results() const;
  /// Where best.safetensors is missing: " (it was update 2, 0.18)", empty if there was one but its update is not known,
  /// nothing if the run never had one.
  std::optional<std::string> lost_best() const;
  void lock();

  std::string path_;
  bool writes_ = true;
  std::vector<std::string> notes_;
  std::unique_ptr<Lock> lock_;
};

}  // namespace reel
