// The training loop: batches, gradient, update, validation, and everything a run leaves behind.
#pragma once
#include <functional>

#include "tasks/app/observer.h"
#include "tasks/app/picture_style.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/task.h"

namespace reel {

struct TrainOptions {
  std::int64_t steps = 2000;
  std::int64_t valid_every = 0;   // 0: after each pass through the training set, or twenty times in a run
  bool best_by_accuracy = false;  // the best validation has the highest accuracy, not the lowest loss
  std::int64_t patience = 0;      // stop after this many validations without a better one; 0: never
  double stop_below = 0;          // stop when the validation loss is below this; 0: never
  double solved_share = 0.05;  // solved_at in run.json: the first validation below this share of the baseline; 0: none
  std::uint64_t seed = 1;
  int threads = 1;
  int cores = 0;              // that this process may use; 0: all that are available
  int shards = 0;             // Backend::set_shards
  double rank_patience = 60;  // seconds for which a rank waits for another; 0: for ever
  bool quiet = false;
  bool test = true;    // at the end, if there is a test set
  bool graphs = true;  // capture steps as graphs, if the device can
  ExampleOptions examples;
  ScheduleOptions schedule;
  std::string cell, device, command, preset;  // for run.json
  PictureStyle picture;                       // of the curve
  std::vector<Observer*> observers;
  std::function<void()> accepted;  // called once the checkpoint, if there is one, has been found to fit
};

/// The number of updates from one validation to the next.
std::int64_t validation_interval(const TrainOptions& options, const Task& task, const Examples& examples);

/// Throws SettingError if the best validation is to have the highest accuracy, and the task has none.
void require_accuracy(const Task& task, const Model& model, const TrainOptions& options);

/// The result of a training run.
struct Outcome {
  RunRecord record;
  bool interrupted = false;           // by Ctrl-C or SIGTERM; the run is saved and can be resumed
  std::string unsaved;                // why run.json or the curve could not be written; empty: all are written
  std::vector<std::string> problems;  // of the observers, at the end
};

/// Trains until options.steps, until patience runs out or the validation loss is low enough, starting from the
/// checkpoint in the folder if there is one. After Ctrl-C it finishes the step and saves. The parameters of the best
/// validation are kept in best.safetensors; at the end the model of a task with a data set has them, with or
/// without a test. Throws Error if the loss, the gradient, a parameter or an optimiser state is not finite (the last
/// checkpoint stays, and run.json says at which step), or if the checkpoint does not fit. All ranks of a run call it
/// alike; each computes its share, rank 0 writes the files, and all come to the same result.
Outcome train(const Task& task, Model& model, Optimizer& optimizer, RunFolder& folder, const TrainOptions& options,
              Ranks& ranks);
/// The same by this process alone.
Outcome train(const Task& task, Model& model, Optimizer& optimizer, RunFolder& folder, const TrainOptions& options);

}  // namespace reel
