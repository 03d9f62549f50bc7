#include "tasks/training/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <sstream>

#include "engine/core/parse.h"
#include "tasks/training/option_checks.h"

namespace reel {

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  require_one_of("schedule", options.kind, ScheduleOptions::kinds());
  require_least("every", options.every, 1), require_least("patience", options.patience, 1);
  require_least("after", options.after, 0), require_least("warmup", options.warmup, 0);
  require_least("steps", options.steps, 0);
  require_within("factor", options.factor, 1), require_within("floor", options.floor, 1);
}

double Schedule::factor(std::int64_t step) const {
  const double factor = fallen(step);
  if (step >= options_.warmup) return factor;
  return factor * static_cast<double>(step + 1) / static_cast<double>(options_.warmup);
}

/// The factor without the warm-up.
double Schedule::fallen(std::int64_t step) const {
  if (options_.kind == "step") {
    const std::int64_t changes = step / options_.every;
    return std::pow(options_.factor, static_cast<double>(changes));
  }
  if (options_.kind != "cosine" && options_.kind != "linear") return factor_;
  const auto length = static_cast<double>(std::max<std::int64_t>(1, options_.steps - options_.warmup));
  const double done = std::clamp(static_cast<double>(step - options_.warmup) / length, 0.0, 1.0);
  const double left = options_.kind == "cosine" ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
  return options_.floor + (1 - options_.floor) * left;
}

void Schedule::validated(double loss) {
  if (options_.kind == "window") {
    if (++seen_ > options_.after && !last_.empty() && loss > *std::max_element(last_.begin(), last_.end()))
      factor_ *= options_.factor;
    last_.push_back(loss);
    if (std::ssize(last_) > options_.patience) last_.erase(last_.begin());
  }
  if (options_.kind != "plateau") return;
  if (waited_ < 0 || loss < best_) {
    best_ = loss;
    waited_ = 0;
  } else if (++waited_ >= options_.patience) {
    factor_ *= options_.factor;
    waited_ = 0;
  }
}

std::string Schedule::state() const {
  std::string text = fmt::format("{} {} {} {}", factor_, best_, waited_, seen_);
  for (const double loss : last_) text += fmt::format(" {}", loss);
  return text;
}

bool Schedule::restore(const std::string& state) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  std::istringstream in(state);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  if (words.size() < 4) return false;
  const auto factor = parse<double>(words[0]), best = parse<double>(words[1]);
  const auto waited = parse<std::int64_t>(words[2]), seen = parse<std::int64_t>(words[3]);
  if (!factor || !(*factor >= 0 && *factor <= 1) || !best || !std::isfinite(*best)) return false;
  if (!waited || *waited < -1 || *waited > most || !seen || *seen < 0 || *seen > most) return false;
  std::vector<double> last;
  for (std::size_t i = 4; i < words.size(); ++i) {
    const auto loss = parse<double>(words[i]);
    if (!loss || !std::isfinite(*loss)) return false;
    last.push_back(*loss);
  }
  if (std::ssize(last) > *seen) return false;
  factor_ = *factor, best_ = *best, waited_ = *waited, seen_ = *seen, last_ = std::move(last);
  return true;
}

}  // namespace reel
