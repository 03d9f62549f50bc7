// A task's program before it trains: its options, and the device, task, model and optimiser that they make.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "tasks/app/kernel_trace.h"
#include "tasks/app/launch.h"
#include "tasks/app/shared_options.h"
#include "tasks/training/model_file.h"
#include "tasks/training/optimizer.h"

namespace reel {

struct Session {
  /// Adds all options. Called by all ranks, which tell each other where they are.
  Session(const TaskProgram& program, Ranks& ranks);
  Session(const Session&) = delete;  // the options refer to its variables
  Session& operator=(const Session&) = delete;

  /// Reads the command line, then makes device, task, model and optimiser. Throws Usage, Exit and FileError; if it
  /// fails on any rank, on all.
  void prepare(int argc, const char* const* argv);
  /// The model before its first update.
  std::unique_ptr<Model> untrained() const;
  bool resumed() const { return !options.resume().empty(); }
  /// Does it start from the parameters that --init-from names? A resumed run has its own.
  bool starts_from_other() const { return !shared.init_from.empty() && !resumed(); }
  /// What the model is made of, unless the program makes it itself.
  ModelConfig config() const;

  const TaskProgram& program;
  Ranks& ranks;
  const Neighbours machine;
  Shared shared;
  Options options;
  std::vector<Picture> pictures;  // all, then those that --picture names
  PictureStyle style;
  DType dtype = DType::f32;
  std::unique_ptr<KernelTrace> trace;  // with --trace-kernels
  Backend* device = nullptr;           // of the model
  std::unique_ptr<Task> task;
  std::unique_ptr<Model> model;
  std::optional<Optimizer> optimizer;

 private:
  void settle_train(int argc, const char* const* argv);
  void open_device();
  void make_model();
};

}  // namespace reel
