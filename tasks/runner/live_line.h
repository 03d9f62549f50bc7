// One line that says what is going on.
#pragma once
#include <unistd.h>

#include <chrono>
#include <string>

#include "tasks/io/terminal_line.h"

namespace reel {

/// A line on a terminal that is written over; elsewhere nothing, or with `plain` a line now and then.
class LiveLine {
 public:
  explicit LiveLine(bool plain = false) : plain_(plain) {}
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void show(const std::string& text) {
    if (text == shown_) return;
    if (terminal_) {
      line_.show(text.substr(0, 110));
    } else {
      const auto now = std::chrono::steady_clock::now();
      if (!plain_ || now - last_ < std::chrono::seconds(10)) return;
      last_ = now;
      print_err("{}\n", text);
    }
    shown_ = text;
  }
  void clear() {
    line_.clear();
    shown_.clear();
  }

 private:
  bool plain_, terminal_ = isatty(STDERR_FILENO) != 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::string shown_;
  TerminalLine line_;
};

}  // namespace reel
