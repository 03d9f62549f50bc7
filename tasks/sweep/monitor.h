// One line that says how far a sweep is.
#pragma once
#include <chrono>

#include "tasks/runner/live_line.h"
#include "tasks/sweep/state.h"

namespace reel {

class Monitor {
 public:
  /// `states` are those at the start, by which the time that is left is told.
  Monitor(const Sweep& sweep, std::vector<RunState> states) : sweep_(sweep), before_(std::move(states)) {}
  /// "12 of 36 runs done, 2 running, 1 failed, 0:41 left", on a terminal over the last one, elsewhere now and then.
  void show(const std::vector<RunState>& states);
  /// Prints a line that stays.
  void say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  /// Once a run has ended: says so if it lacks the metric, rather than after the last one.
  void check_metric(const std::vector<RunState>& states);

  const Sweep& sweep_;
  std::vector<RunState> before_;
  LiveLine live_{true};
  Clock::time_point start_ = Clock::now(), looked_;
  bool checked_ = false;  // the metric
};

}  // namespace reel
