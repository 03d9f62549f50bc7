#include "tasks/app/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tasks/io/output.h"

namespace reel {

namespace {

constexpr std::chrono::milliseconds live_pause(100), plain_pause(10000);

/// " (13% of baseline)", or nothing without a baseline.
std::string share_text(double loss, double baseline) {
  if (!(baseline > 0)) return "";
  const double percent = 100 * loss / baseline;
  return fmt::format(" ({}% of baseline)",
                     percent < 10 ? fmt::format("{:.2g}", percent) : fmt::format("{:.0f}", percent));
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::min(std::ceil(seconds), 1e9));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string progress_line(const ProgressView& view, int width) {
  const std::int64_t steps = std::max<std::int64_t>(view.steps, 1);
  const double part = std::clamp(static_cast<double>(view.step) / static_cast<double>(steps), 0.0, 1.0);
  std::vector<std::string> parts{fmt::format("{}/{}", view.step, view.steps), fmt::format("  loss {:.3g}", view.loss),
                                 share_text(view.loss, view.baseline)};
  if (view.rate > 0) {
    parts.push_back(view.rate < 1 ? fmt::format("  {:.3g} s/step", 1 / view.rate)
                                  : fmt::format("  {:.3g} steps/s", view.rate));
    if (view.step < view.steps && !view.ending)
      parts.push_back(fmt::format("  {} left", duration(static_cast<double>(view.steps - view.step) / view.rate)));
  }
  const auto room = width == 0 ? std::string::npos : static_cast<std::size_t>(width);
  std::string text;
  for (const std::string& p : parts) {
    if (text.size() + p.size() > room) break;
    text += p;
  }
  if (width == 0) return text;
  // keeps the bar at the same length from line to line; it is shorter only if the text needs the space
  const std::size_t wish = room < 110 ? 10 : 30, left = room > text.size() + 3 ? room - text.size() - 3 : 0;
  const std::size_t bar = std::min(wish, left);
  if (bar >= 5) {
    const auto full = static_cast<std::size_t>(part * static_cast<double>(bar));
    std::string picture(full, '=');
    if (full < bar) picture += '>';
    picture.resize(bar, ' ');
    text = fmt::format("[{}] {}", picture, text);
  }
  return text;
}

Progress::Progress(bool quiet, std::int64_t steps, double baseline, std::int64_t start_step)
    : quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_step_(start_step),
      start_(Clock::now()),
      last_(start_) {
  view_.step = start_step;
  view_.steps = steps;
  view_.baseline = baseline;
}

Progress::~Progress() { line_.clear(); }

void Progress::update(std::int64_t step, double loss) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  view_.step = step;
  view_.loss = loss;
  told_ = false;
  if (now - last_ < (terminal_ ? live_pause : plain_pause)) return;
  last_ = now;
  draw();
}

void Progress::validated(std::int64_t step, double train_loss, double valid_loss, double accuracy) {
  message(fmt::format("step {}  train {:.4g}  valid {:.3g}{}{}", step, train_loss, valid_loss,
                      share_text(valid_loss, view_.baseline),
                      std::isnan(accuracy) ? "" : fmt::format("  accuracy {:.4g}", accuracy)));
}

void Progress::message(const std::string& text) {
  if (quiet_) return;
  const bool again = line_.shown();
  line_.clear();
  write_err(text + "\n");
  if (again) draw();
}

void Progress::done() {
  if (!quiet_ && !told_) draw();
  line_.leave();
}

void Progress::draw() {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  view_.rate = seconds > 0 ? static_cast<double>(view_.step - start_step_) / seconds : 0;
  told_ = true;
  if (!terminal_) return write_err(progress_line(view_, 0) + "\n");
  // leaves one column free, because some terminals wrap when the last one is filled
  line_.show(progress_line(view_, std::max(terminal_width() - 1, 1)));
}

}  // namespace reel
