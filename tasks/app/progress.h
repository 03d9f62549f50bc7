// Shows the progress of a run: one live line on a terminal, a plain line now and then elsewhere. It goes to stderr, so
// that stdout has only the program's results.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "tasks/io/terminal_line.h"

namespace reel {

/// "0:17", "1:05:00", rounded up.
std::string duration(double seconds);

/// The progress at one moment.
struct ProgressView {
  std::int64_t step = 0, steps = 0;
  double loss = 0, baseline = 0;
  double rate = 0;      // steps per second; 0: not known yet
  bool ending = false;  // no more steps follow
};

/// "[=====>    ] 1234/2000  loss 0.0123 (13% of baseline)  45.2 steps/s  0:17 left" in at most `width` columns,
/// where the last parts are left out if they do not fit; with width 0, no bar and no limit.
std::string progress_line(const ProgressView& view, int width);

class Progress {
 public:
  /// Counts from start_step to steps; a baseline that is not above 0 is left out. Quiet shows nothing at all.
  Progress(bool quiet, std::int64_t steps, double baseline, std::int64_t start_step = 0);
  /// Clears the live line if done() did not finish it.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Call after every step; prints ten times a second on a terminal, every ten seconds elsewhere.
  void update(std::int64_t step, double loss);
  /// Prints a validation, in a line that stays.
  void validated(std::int64_t step, double train_loss, double valid_loss, double accuracy);
  /// Prints a whole line above the live one.
  void message(const std::string& text);
  /// Lets no time be left: the run ends here.
  void ends() {
    view_.ending = true;
    told_ = told_ && !terminal_;  // the live line is drawn once more
  }
  /// Prints the last state, which stays.
  void done();

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  bool quiet_, terminal_;
  TerminalLine line_;
  bool told_ = true;  // the current step has been shown
  ProgressView view_;
  std::int64_t start_step_;
  Clock::time_point start_, last_;
};

}  // namespace reel
