// Runs a preset as a separate program, in a folder that records whether it is done: finished runs are not repeated,
// interrupted ones continue.
#pragma once
#include <functional>

#include "tasks/app/preset.h"
#include "tasks/app/run_folder.h"

namespace reel {

/// How to run a preset; whatever is empty or 0 is left to the program.
struct PresetRunOptions {
  double budget = 1;  // the fraction of the updates (for mechanism: of the draws), at least 20
  std::uint64_t seed = 1;
  std::string data, device;
  std::int64_t threads = 0;
  double stop_below = 0;  // ends a run of a training program early; 0: does not
  std::string root = "runs/reproduce";
};

struct PresetRun {
  std::uint64_t seed = 1;
  std::string folder;            // empty: not begun, or known from stored results only
  std::string problem;           // why there is no number; empty: there is one
  bool kept = false;             // it was finished before this call
  bool interrupted = false;      // a stop was requested before it finished
  bool diverged = false;         // then there is a problem, too
  std::vector<double> measured;  // one for each measure of the preset; NaN: the run does not have it; infinite: never
  double baseline = 0;           // NaN: the run has none
  std::int64_t parameters = -1;
  std::int64_t updates = 0, whole = 0;  // done so far, and in the whole preset (for mechanism: draws)
  double seconds = 0;
  int threads = 0;
  std::string command;                                            // repeats the run
  std::string data;                                               // the folder that it read; empty: none, or unknown
  std::string device, version, commit, processor, kernels, date;  // where the numbers come from; empty: unknown
  std::vector<RunFolder::Row> curve = {};                         // its validations
  bool done() const { return problem.empty() && !interrupted; }
};

/// True if the preset's program reads data sets, and so has --data.
bool reads_files(const Preset& preset);
/// The value of a preset's option, as "--data"; empty if the preset does not set it.
std::string option_of(const Preset& preset, const std::string& name);
/// The options of a preset's run that its results depend on, in eight digits.
std::string mark_of_preset(const Preset& preset);

/// True if a run has a problem that its row does not expect.
bool failed(const Preset& preset, const PresetRun& run);

/// Folder, command and data of a run, which is not looked at or started. `whole` is the size of the preset, which
/// counts with a budget only.
PresetRun planned_run(const Preset& preset, const PresetRunOptions& options, std::int64_t whole = 0);
/// The updates of a run, where the whole preset has `whole`.
std::int64_t planned_updates(const PresetRunOptions& options, std::int64_t whole);
/// The share of a training run's updates that its folder does not have; 0 if it would be kept.
double share_left(const Preset& preset, const PresetRunOptions& options, std::int64_t whole);

/// A line for a run that read the folder `had`, if that is not the one that these options name now; otherwise empty. An
/// unknown one is taken for the same.
std::string other_data(const PresetRun& planned, const std::string& had, const std::string& where);

/// Runs a preset, or returns what an earlier call left. While it runs, `waiting` is called with the last line of the
/// program's messages, and returns true to request a stop. Never throws for what the program does.
PresetRun run_preset(const Preset& preset, const PresetRunOptions& options,
                     const std::function<bool(const std::string&)>& waiting);

}  // namespace reel
