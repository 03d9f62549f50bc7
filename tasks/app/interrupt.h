// Turns Ctrl-C, SIGTERM and a terminal's hang-up into a request: the training loop checks it after each step, saves,
// and ends; the test at its end checks it after each batch.
#pragma once
#include <array>
#include <csignal>

namespace reel {

class Interrupt {
 public:
  /// The exit code of main() after an interrupted run.
  static constexpr int exit_code = 130;

  /// From now on the first SIGINT, SIGTERM or SIGHUP sets requested(); another one of the same kind ends the process at
  /// once, unless it comes within a quarter of a second: then it is the same wish. An ignored one stays ignored.
  Interrupt();
  /// Restores the previous signal handlers; after a request they stay.
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  static constexpr std::array kinds{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kinds.size()> before_{};
};

/// Lets this program end when the one that started it by run_logged() (spawn.h) dies. An Interrupt turns that into a
/// request.
void end_with_owner();

}  // namespace reel
