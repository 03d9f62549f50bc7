// How a run tells of itself while it goes: one live line on a terminal, a plain line now and then elsewhere, on stderr
// so that stdout keeps what the program has to say.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace reel {

/// What there is to tell at one moment.
struct ProgressView {
  std::int64_t step = 0, steps = 0;
  double loss = 0, baseline = 0;
  double rate = 0;  // steps a second; 0: not known yet
};

/// "[=====>    ] 1234/2000  loss 0.0123 (13% of baseline)  45.2 steps/s  0:17 left" in at most `width` columns; without
/// bar and limit when width is 0.
std::string progress_line(const ProgressView& view, int width);

class Progress {
 public:
  /// Counts from start_step to steps; a baseline that is not above 0 is left out. Quiet tells nothing at all.
  Progress(bool quiet, std::int64_t steps, double baseline, std::int64_t start_step = 0);
  /// Takes the live line away if done() did not finish it.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Call after every step; tells ten times a second on a terminal, every ten seconds elsewhere.
  void update(std::int64_t step, double loss);
  /// Tells of a validation, in a line that stays.
  void validated(std::int64_t step, double train_loss, double valid_loss, double accuracy);
  /// A whole line above the live one.
  void message(const std::string& text);
  /// The last state, which stays.
  void done();

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void clear();

  bool quiet_, terminal_;
  bool drawn_ = false, told_ = true;  // the live line is there; the present step has been told
  ProgressView view_;
  std::int64_t start_step_;
  Clock::time_point start_, last_;
};

}  // namespace reel
