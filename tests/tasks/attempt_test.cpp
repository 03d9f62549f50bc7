// What is said of a program that did not end well.
#include "tasks/runner/attempt.h"

#include <filesystem>

#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

/// Why the run of a shell script failed.
std::string problem_of(const std::string& script) {
  const TempDir dir;
  const std::string program = dir / "program", folder = dir / "run";
  write_atomically(program, "#!/bin/sh\n" + script);
  fs::permissions(program, fs::perms::owner_all);
  const auto no = [] { return false; };
  const Attempted a = attempt({program, {}, {}, folder, folder, no, no}, [](const std::string&) { return false; });
  CHECK(a.end == Attempted::End::failed);
  return a.problem;
}

}  // namespace

TEST_CASE("a program that failed says why itself; of one that was killed its last line is progress") {
  CHECK(problem_of("echo '[x] no such file' >&2; exit 1") == "[x] no such file");
  CHECK(problem_of("exit 3") == "ended with code 3");
  CHECK(problem_of("exit 0") == "the program left no result");
  CHECK(problem_of("echo 'step 550  train 0.1' >&2; kill -9 $$") ==
        "was killed by signal 9 (Killed), perhaps as memory ran out");
  CHECK(problem_of("echo 'step 550  train 0.1' >&2; kill -11 $$") == "was killed by signal 11 (Segmentation fault)");
  CHECK(problem_of("echo 'terminate called' >&2; kill -6 $$") == "was killed by signal 6 (Aborted): terminate called");
}

TEST_CASE("of a program's messages, however many, the last line is told while it runs") {
  const TempDir dir;
  const std::string program = dir / "program", folder = dir / "run";
  write_atomically(program,
                   "#!/bin/sh\ndd if=/dev/zero bs=1 count=1 seek=1099511627776 status=none >&2\n"
                   "printf '\\nstep 1\\nstep 2\\n' >&2; exec sleep 60");  // 1 TiB, which no memory holds
  fs::permissions(program, fs::perms::owner_all);
  std::string told;
  const auto no = [] { return false; };
  attempt({program, {}, {}, folder, folder, no, no}, [&](const std::string& line) {
    told = line;
    return line == "step 2";
  });
  CHECK(told == "step 2");
}
