// Other programs, run without a shell, so that a file's name cannot become a command.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace reel {

/// What came of a program.
struct Spawned {
  std::string
      problem;  // why it did not run, or how it ended when not with 0: "is not installed", "failed: ..."; else empty
  std::string out;  // what it wrote to stdout
};

/// Runs arguments[0], found as a shell finds it, with `input` on its stdin, and waits for its end. Ctrl-C does not
/// reach it.
Spawned run_child(const std::vector<std::string>& arguments, const std::string& input = "");

/// Runs arguments[0] with its stdout and stderr in files. `stop` is asked twenty times a second; when it says true the
/// program gets SIGTERM, once. Returns its exit code, 128 + the signal that ended it, or 127 when it could not be
/// started.
int run_logged(const std::vector<std::string>& arguments, const std::string& out, const std::string& err,
               const std::function<bool()>& stop);

}  // namespace reel
