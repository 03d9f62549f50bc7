#include "tasks/app/training_run.h"

#include <filesystem>
#include <limits>

#include "backends/cpu/product_libraries.h"
#include "cells/plugin.h"
#include "tasks/app/agreement.h"
#include "tasks/training/device.h"

namespace reel {

Schedule schedule_of(const TrainOptions& options) {
  ScheduleOptions over_run = options.schedule;
  over_run.steps = options.steps;
  return Schedule(over_run);
}

namespace {
/// Loads the checkpoint.
void load(TrainingRun& run, Start& start) {
  const TrainOptions& options = run.options;
  // A step starts from states with the specs of those that the step before it leaves.
  const auto needed = [&](std::int64_t step) {
    std::vector<Spec> specs;
    if (step == 0 || step >= options.steps || !run.task.continues(run.examples.train(step))) return specs;
    Tensors states;
    const Batch before = run.task.batch(options.seed, run.examples.train(step - 1));
    run.model.forward(on(before, run.model.device()), std::nullopt, &states);
    for (const Tensor& state : states) specs.push_back(state.spec());
    return specs;
  };
  Loaded loaded = load_checkpoint(run.checkpoint, run.model, run.optimizer, run.schedule, options.seed, needed);
  start.at = std::move(loaded.at);
  start.best = best_of(run.best_file);
  if (!loaded.checked)
    start.notes.push_back(run.checkpoint + " has no checksum, as an older Reel wrote it: damage would not be seen");
  if (start.at.shards < 0 && options.device.starts_with("cpu"))
    start.notes.push_back(run.checkpoint +
                          " is of an older Reel, whose sums depended on the number of threads: from here on, the last "
                          "digits may differ from those of its uninterrupted run");
}

}  // namespace

Start start_of(TrainingRun& run) {
  Start start;
  start.resumed = std::filesystem::exists(run.checkpoint);
  if (start.resumed) load(run, start);
  require_same(run.ranks, run.model);  // and none looks for a checkpoint after this
  if (run.options.accepted) run.options.accepted();
  start.at.shards = run.options.shards;
  run.folder.keep_rows_up_to(start.at.step);
  start.rows = run.folder.rows();
  return start;
}

RunRecord record_of(const TrainingRun& run, const std::vector<RunFolder::Row>& rows) {
  const TrainOptions& options = run.options;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  RunRecord record;
  record.task = run.task.name();
  record.cell = options.cell;
  record.parameters = run.model.count();
  record.seed = options.seed;
  record.baseline = run.task.baseline();
  record.device = options.device;
  record.threads = options.threads;
  record.ranks = run.ranks.size();
  record.command = options.command;
  record.kernels = cpu::product_libraries();
  record.plugins = loaded_plugins();
  record.preset = options.preset;
  record.solved_share = options.solved_share;
  record.train_loss = record.valid_loss = record.accuracy = record.update_seconds = nan;
  if (rows.empty()) return record;
  record.train_loss = rows.back().train_loss;
  record.valid_loss = rows.back().valid_loss;
  record.accuracy = rows.back().accuracy;
  return record;
}

}  // namespace reel
