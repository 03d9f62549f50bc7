// How far the runs of a sweep are, as their folders say.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tasks/sweep/definition.h"

namespace reel {

struct RunState {
  std::int64_t reached = 0;  // updates up to which the run is complete; a run that stopped by itself has them all
  bool noted = false;        // that is more than run.json says
  bool locked = false;       // its program has not ended, or was killed
  bool claimed = false;      // a worker is at it
  std::string problem = {};  // why it failed, or cannot be read; empty: neither
  bool final = false;        // it would fail in the same way again

  /// True if nothing is left to do up to so many updates.
  bool has(std::int64_t updates) const { return reached >= updates && !locked; }
};

/// What a worker notes in the run's folder when a run ends.
struct Ending {
  std::int64_t reached = 0;
  std::string problem = {};
  bool final = false;
};

/// Why runs failed, by their numbers, where a run's folder could not take it.
using Untold = std::map<std::size_t, std::string>;

/// What the folder says; an error of reading is the run's problem.
RunState read_state(const Sweep& sweep, const SweepRun& run);
std::vector<RunState> read_states(const Sweep& sweep, const Untold& untold = {});
/// Writes the ending beside the run; throws Error if it cannot be written.
void note_ending(const std::string& folder, const Ending& ending);
/// Removes it, where run.json says all.
void drop_note(const std::string& folder);
/// What a call begins with: runs that failed may be tried again, unless they would fail in the same way; claims that
/// the dead left on finished runs go.
void tidy(const Sweep& sweep);

/// What is to be done, given how far all runs are.
struct Wanted {
  std::vector<std::int64_t> updates;  // of each run; as many as it has where it is dropped
  bool last = true;                   // nothing will be added when these are done
};
/// Without halving, all updates of all runs. With halving, the rung that is next: once all runs of a rung have ended,
/// the best part of the combinations, by the mean over seeds at that rung, go on to the next one.
Wanted wanted(const Sweep& sweep, const std::vector<RunState>& states);

struct Counts {
  std::size_t done = 0, failed = 0, running = 0, dropped = 0, left = 0;  // left: neither; running ones are among them
  bool complete() const { return left == 0; }
};
Counts count(const Sweep& sweep, const std::vector<RunState>& states);
/// "1 run", "2 runs"
std::string runs_text(std::size_t count);
/// "12 of 36 runs done, 2 running, 1 failed"
std::string text_of(const Counts& counts);

}  // namespace reel
