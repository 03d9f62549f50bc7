// Other programs, run without a shell, so that a file's name cannot become a command.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace reel {

/// The exit code, as shells have it, of a program that could not be started.
constexpr int could_not_start = 127;

/// What came of a program.
struct Spawned {
  /// Why it did not run, or how it ended when not with 0: "is not installed", "failed: ..."; else empty.
  std::string problem;
  std::string out, err;        // what it wrote to stdout and stderr
  int code = could_not_start;  // its exit code, or 128 + the signal that ended it
};

/// Runs arguments[0], found as a shell finds it, with `input` on its stdin, and waits for its end. Ctrl-C does not
/// reach it. Where there is a `stop`, it is asked twenty times a second; when it says true the program gets SIGTERM,
/// once.
Spawned run_child(const std::vector<std::string>& arguments, const std::string& input = "",
                  const std::function<bool()>& stop = {});

/// The same with stdout and stderr in files; returns the exit code.
int run_logged(const std::vector<std::string>& arguments, const std::string& out, const std::string& err,
               const std::function<bool()>& stop);

}  // namespace reel
