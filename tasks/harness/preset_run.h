// A preset run as a program of its own, in a folder that says whether it is done: what is done is not done again, what
// was interrupted goes on.
#pragma once
#include <functional>

#include "tasks/harness/preset.h"

namespace reel {

/// How to run it; what is empty or 0 is left to the program.
struct PresetRunOptions {
  double budget = 1;  // the share of the updates (of mechanism: of the draws), 20 at least
  std::uint64_t seed = 1;
  std::string data, device;
  std::int64_t threads = 0;
  std::string root = "runs/reproduce";
};

struct PresetRun {
  std::string folder;
  std::string problem;       // why there is no number; empty: there is one
  bool kept = false;         // it was done before
  bool interrupted = false;  // the wish to stop came first
  double measured = 0;       // the preset's metric; NaN: the run does not have it
  double baseline = 0;       // NaN: there is none
  std::int64_t parameters = -1;
  std::int64_t updates = 0, whole = 0;  // done, and those of the whole preset (of mechanism: draws)
  double seconds = 0;
  int threads = 0;
  bool done() const { return problem.empty() && !interrupted; }
};

/// Runs it or takes what an earlier call left. `waiting` is called with the last line of the program's messages while
/// it runs; true from it is the wish to stop. Never throws for what the program does.
PresetRun run_preset(const Preset& preset, const PresetRunOptions& options,
                     const std::function<bool(const std::string&)>& waiting);

}  // namespace reel
