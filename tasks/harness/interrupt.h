// Ctrl-C, SIGTERM and a terminal that hangs up as a wish: the training loop looks at it after each step, saves, and
// ends.
#pragma once
#include <csignal>

namespace reel {

class Interrupt {
 public:
  /// What main() returns after a run that was interrupted.
  static constexpr int exit_code = 130;

  /// From now on the first SIGINT, SIGTERM or SIGHUP sets requested(); the second of a kind ends the process at once.
  /// An ignored SIGHUP stays ignored.
  Interrupt();
  /// Puts back what the signals did before.
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
  struct sigaction before_hup_ {};
};

}  // namespace reel
