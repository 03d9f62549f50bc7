// The options that all tasks share: model, training, optimiser, run.
#pragma once
#include "tasks/app/run.h"
#include "tasks/app/train.h"

namespace reel {

struct Shared {
  TrainOptions train;
  OptimizerOptions optimizer;
  ModelOptions model;
  std::string cell = "srnn", hidden = "128";  // or several, as layers from bottom to top
  std::string device = "cpu", precision = "f32", dtype = "f32", denormals = "flush", out, best = "loss",
              epsilon_place = "outside", group_lr, shuffle = "on";
  std::string data, explain, init_from, tensorboard;
  PictureOptions pictures;
  double epochs = 0;
  std::int64_t threads = 0, shards = 0;
  bool dry_run = false, print_passes = false, trace_kernels = false, list_cells = false, no_test = false,
       no_graph = false, no_report = false;
};

/// The folder of data sets without --data: REEL_DATA in the environment, or "data".
std::string default_data();
/// Adds them, with hints for what other programs call some of them.
void add_shared(Options& options, Shared& shared, const TaskProgram& program);
/// Completes the values after parsing. Throws Usage.
void settle(Shared& shared, const Options& options);

}  // namespace reel
