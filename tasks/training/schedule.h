// The learning rate over the run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reel {

/// How a factor on the learning rate changes over the run. The first `warmup` steps rise to it in equal parts.
struct ScheduleOptions {
  /// constant; step: times factor every `every` steps; plateau: times factor after `patience` validations without a
  /// better loss; window: times factor after a validation worse than each of the `patience` before it, except among the
  /// first `after` (the rule of TCN's and R-Transformer's code, Bai et al. 2018); cosine, linear: falls from 1 after
  /// the warm-up to `floor` after `steps`, by half a period of a cosine (Loshchilov & Hutter 2017) or in equal parts.
  std::string kind = "constant";
  std::int64_t every = 1000;
  double factor = 0.5;
  std::int64_t patience = 3, after = 10;
  std::int64_t warmup = 0;  // steps
  double floor = 0;         // between 0 and 1
  std::int64_t steps = 0;   // of the run
  static std::vector<std::string> kinds() { return {"constant", "step", "cosine", "linear", "plateau", "window"}; }
};

class Schedule {
 public:
  /// Throws SettingError for an option that is out of range.
  explicit Schedule(const ScheduleOptions& options);
  /// The factor at a step, counted from 0.
  double factor(std::int64_t step) const;
  void validated(double loss);
  /// The state, as text for a checkpoint.
  std::string state() const;
  /// Restores it; false, with nothing changed, if the text is not a valid state.
  bool restore(const std::string& state);

 private:
  double fallen(std::int64_t step) const;

  ScheduleOptions options_;
  double factor_ = 1, best_ = 0;
  std::int64_t waited_ = -1;  // validations since the best one; -1 before the first
  std::int64_t seen_ = 0;     // number of validations
  std::vector<double> last_;  // the losses of the latest ones, at most `patience`
};

}  // namespace reel
