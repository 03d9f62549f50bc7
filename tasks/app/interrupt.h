// Turns Ctrl-C, SIGTERM and a terminal's hang-up into a request: the training loop checks it after each step, saves,
// and ends.
#pragma once
#include <csignal>

namespace reel {

class Interrupt {
 public:
  /// The exit code of main() after an interrupted run.
  static constexpr int exit_code = 130;

  /// From now on the first SIGINT, SIGTERM or SIGHUP sets requested(); a second one of the same kind ends the process
  /// at once. An ignored SIGHUP stays ignored.
  Interrupt();
  /// Restores the previous signal handlers.
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
