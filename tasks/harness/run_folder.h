// What a run leaves on the disk: config.toml, metrics.csv, run.json, checkpoint.safetensors, curve.svg, and for a task
// with a test set best.safetensors. Every file is whole at every moment, whenever the process dies. One program at a
// time writes there; its name is in the file "lock" as long as it does.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasks/harness/lock.h"

namespace reel {

/// What run.json tells of a run; a number that is not known is NaN here and null there.
struct RunRecord {
  std::string task, cell;
  std::int64_t parameters = 0;
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  double baseline = 0, train_loss = 0, valid_loss = 0, accuracy = 0;
  double seconds = 0, steps_per_second = 0;
  double update_seconds = 0;  // of one update, without validations and files; the first of the process does not count
  std::string device;
  int threads = 1;
  bool finished = false;
  /// Of a task with a test set: the update after which the validation loss was lowest, and what the test then came to,
  /// by name ("loss", "accuracy", ...).
  std::int64_t best_step = -1;
  std::vector<std::pair<std::string, double>> test = {};
  std::int64_t diverged_at_step = -1;  // -1: it did not
};

class RunFolder {
 public:
  /// A line of metrics.csv; a number that is not known is NaN here and an empty field there.
  struct Row {
    std::int64_t step = 0, examples = 0;
    double seconds = 0, train_loss = 0, valid_loss = 0, accuracy = 0, grad_norm = 0;
    bool operator==(const Row&) const = default;
  };

  /// Makes the folder `out`, or runs/TASK-CELL-DATE-TIME when that is empty. A run that died before its first update is
  /// none. Throws Error when the folder cannot be written, holds a run, or another program is writing to it.
  static RunFolder create(const std::string& out, const std::string& task, const std::string& cell);
  /// The folder of a run to be resumed, from its start when there is no checkpoint yet. Throws Error when something of
  /// it is missing, or another program is writing to it.
  static RunFolder open(const std::string& folder);
  /// The folder of a run to be looked at only; throws Error when it is none.
  static RunFolder view(const std::string& folder);

  const std::string& path() const { return path_; }
  /// What its user should know of it, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// The path of a file in the folder.
  std::string file(const std::string& name) const;

  /// Puts a row at the end of metrics.csv; it is on the disk when this returns.
  void add_row(const Row& row);
  /// The rows of metrics.csv, without a last one that is not complete; none when it is gone. Throws Error with the line
  /// of a damaged one.
  std::vector<Row> rows() const;
  /// The same from the text of such a file.
  static std::vector<Row> rows_in(const std::string& path, std::string_view text);
  /// Takes away the rows behind a step, so that a resumed run writes them anew.
  void keep_rows_up_to(std::int64_t step);

  void write_config(const std::string& toml);
  void write_run_json(const RunRecord& record);

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  bool has(const std::string& name) const;
  /// True when the run has made no update: there is no checkpoint, or one of its very start, which holds no more than
  /// config.toml says.
  bool untouched() const;
  void lock();

  std::string path_;
  std::vector<std::string> notes_;
  std::unique_ptr<Lock> lock_;
};

}  // namespace reel
