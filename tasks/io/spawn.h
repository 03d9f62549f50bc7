// Runs other programs without a shell, so that a file name cannot become a command.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace reel {

/// The exit code for a program that could not be started, as in shells.
constexpr int could_not_start = 127;

/// The result of running a program.
struct Spawned {
  /// Why it did not run, or how it failed if its exit code was not 0: "is not installed", "failed: ..."; else empty.
  std::string problem;
  std::string out, err;        // what it wrote to stdout and stderr
  int code = could_not_start;  // its exit code, or 128 + the signal that ended it
};

/// Runs arguments[0], found like in a shell, with `input` on its stdin, and waits for it to end. Ctrl-C does not reach
/// it. `stop`, if given, is called twenty times a second; when it returns true the program gets SIGTERM, once, or as
/// often as `signals` says, a second apart.
Spawned run_child(const std::vector<std::string>& arguments, const std::string& input = "",
                  const std::function<bool()>& stop = {}, int signals = 1);

/// True if run_child() finds this program: a file that can be executed, by its path or in a folder of PATH.
bool can_run(const std::string& program);

/// The environment variable by which run_logged() tells a program its own process number.
constexpr const char* owner_variable = "REEL_OWNER";

/// The same with stdout and stderr going to files; returns the exit code. A program with an Interrupt (interrupt.h)
/// saves and ends when this process dies, however that happens.
int run_logged(const std::vector<std::string>& arguments, const std::string& out, const std::string& err,
               const std::function<bool()>& stop);

}  // namespace reel
