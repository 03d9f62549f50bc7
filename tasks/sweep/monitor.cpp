#include "tasks/sweep/monitor.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "tasks/app/progress.h"
#include "tasks/io/output.h"
#include "tasks/sweep/results.h"

namespace reel {

void Monitor::show(const std::vector<RunState>& states) {
  if (Clock::now() - looked_ < std::chrono::milliseconds(500)) return;
  looked_ = Clock::now();
  check_metric(states);
  const double seconds = std::chrono::duration<double>(looked_ - start_).count();
  const Wanted goal = wanted(sweep_, states);
  double done = 0, left = 0;  // updates in this call, and those that are still wanted
  for (std::size_t i = 0; i < states.size(); ++i) {
    done += static_cast<double>(states[i].reached - before_[i].reached);
    if (states[i].problem.empty()) left += static_cast<double>(goal.updates[i] - states[i].reached);
  }
  std::string text = text_of(count(sweep_, states));
  if (done > 0 && left > 0)
    text += fmt::format(", {} left{}", duration(seconds * left / done), goal.last ? "" : " to the next rung");
  live_.show(text);
}

void Monitor::check_metric(const std::vector<RunState>& states) {
  const auto ended = [](const RunState& s) { return s.reached > 0 && s.problem.empty(); };
  if (checked_ || std::none_of(states.begin(), states.end(), ended)) return;
  checked_ = true;
  try {
    require_metric(sweep_);
  } catch (const Error& e) {
    say(fmt::format("sweep: {}\nsweep: no run is lost: sweep {} --metric NAME compares by another number",
                    one_line(e.what()), shell_path(sweep_.folder)));
  }
}

void Monitor::say(const std::string& text) {
  live_.clear();
  print_err("{}\n", text);
}

}  // namespace reel
