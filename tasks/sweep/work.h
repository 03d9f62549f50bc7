// The work on a sweep: takes runs that are free, one after the other, and runs them. Any number of workers, in this
// process and in others, may be at it.
#pragma once
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "tasks/app/interrupt.h"
#include "tasks/runner/attempt.h"
#include "tasks/sweep/state.h"

namespace reel {

class Work {
 public:
  using Clock = std::chrono::steady_clock;

  /// `order`: the runs to do, first things first. At `end` those that still run are stopped.
  Work(const Sweep& sweep, std::vector<std::size_t> order, std::optional<Clock::time_point> end = std::nullopt);

  /// Does runs until all have ended, those of other workers included, or a stop is requested. Several threads may call
  /// it.
  void help();
  /// Does run number `at`, as far as it is wanted now; nothing if it has all that.
  std::optional<Attempted> do_run(std::size_t at);

  /// True after Ctrl-C, or at the end of the time.
  bool stopping() const;
  bool interrupted() const { return interrupt_.requested(); }
  /// How far all runs are; read anew if the last look is more than a second ago.
  std::vector<RunState> states();
  /// Why runs failed whose folders could not take it.
  Untold untold() const;

 private:
  /// The next run to do; nothing if there is none now, and then `waiting` says whether there may be one later.
  std::optional<std::size_t> next(bool& waiting);
  void look(bool now);
  Attempted run_up_to(std::size_t at, std::int64_t updates);

  const Sweep& sweep_;
  std::vector<std::size_t> order_;
  std::optional<Clock::time_point> end_;
  Interrupt interrupt_;
  mutable std::mutex mutex_;  // of all below
  std::vector<RunState> states_;
  Clock::time_point looked_;
  std::set<std::size_t> here_;  // runs of this process
  Untold failed_;
  std::map<std::size_t, Clock::time_point> taken_;  // when another worker was found at it
};

}  // namespace reel
