// What a training run works with, and where it starts.
#pragma once
#include <string>
#include <vector>

#include "tasks/app/train.h"
#include "tasks/training/checkpoint.h"

namespace reel {

/// The schedule of the whole run. Throws SettingError for an option that is out of range.
Schedule schedule_of(const TrainOptions& options);

/// What train() is given, and what it makes of that alone.
struct TrainingRun {
  const Task& task;
  Model& model;
  Optimizer& optimizer;
  RunFolder& folder;
  const TrainOptions& options;
  Ranks& ranks;
  Schedule schedule = schedule_of(options);
  Examples examples{options.examples, options.seed, task.parts()};
  std::string checkpoint = folder.file("checkpoint.safetensors"), best_file = folder.file("best.safetensors");
};

/// Where a run starts: at its first step, or after those of its checkpoint.
struct Start {
  bool resumed = false;
  Progressed at;
  Best best;
  std::vector<RunFolder::Row> rows;  // of the validations so far
  std::vector<std::string> notes;    // on the checkpoint
};

/// Loads the checkpoint if there is one, on all ranks alike, and makes the folder fit it.
Start start_of(TrainingRun& run);

/// What is known of a run before it goes on from these rows.
RunRecord record_of(const TrainingRun& run, const std::vector<RunFolder::Row>& rows);

}  // namespace reel
