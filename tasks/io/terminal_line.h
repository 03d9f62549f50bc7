// The last line of a terminal, which is written over.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tasks/io/output.h"

namespace reel {

/// On stderr, which must be a terminal. One without escape sequences (TERM=dumb) gets blanks over what was longer.
class TerminalLine {
 public:
  bool shown() const { return size_ > 0; }
  void show(std::string_view text) {
    write_err("\r" + std::string(text) + rest(text.size()));
    size_ = text.size();
  }
  void clear() {
    if (shown()) write_err("\r" + rest(0) + (dumb_ ? "\r" : ""));
    size_ = 0;
  }
  /// The line stays, and what follows begins a new one.
  void leave() {
    if (shown()) write_err("\n");
    size_ = 0;
  }

 private:
  /// Removes what is behind the first columns.
  std::string rest(std::size_t columns) const {
    return dumb_ ? std::string(size_ - std::min(size_, columns), ' ') : "\x1b[K";
  }
  static bool is_dumb() {
    const char* term = std::getenv("TERM");
    return term && std::string_view(term) == "dumb";
  }

  bool dumb_ = is_dumb();
  std::size_t size_ = 0;  // of what is shown
};

}  // namespace reel
