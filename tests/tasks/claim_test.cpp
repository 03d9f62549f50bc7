// Who works on a folder: one of several, on this machine and on others.
#include "tasks/runner/claim.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// A claim that a worker on a machine renewed so many seconds ago.
void left_behind(const TempDir& dir, const std::string& machine, int seconds) {
  std::ofstream(dir / "worker.lock") << "sweep (process 71 on " << machine << ") since 2026-11-22 14:05:33 +0000\n";
  fs::last_write_time(dir / "worker.lock", fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

}  // namespace

TEST_CASE("claim: one at a time; the file says who, and goes with its owner") {
  const TempDir dir;
  {
    const Claim first(dir.path);
    CHECK(claimed(dir.path));
    CHECK(contains(read_file(dir / "worker.lock"), fmt::format("process {} on {}", getpid(), host())));
    CHECK_THROWS_WITH_AS(Claim second(dir.path),
                         doctest::Contains(fmt::format("is in use by claim_test (process {}", getpid()).c_str()), Busy);
  }
  CHECK_FALSE(claimed(dir.path));
  CHECK_FALSE(fs::exists(dir / "worker.lock"));
  const Claim again(dir.path);
}

TEST_CASE("claim: what a dead worker left is free at once here, and on other machines after a minute") {
  const TempDir dir;
  left_behind(dir, host(), 5);
  { const Claim here(dir.path); }
  left_behind(dir, "elsewhere", 5);
  CHECK(claimed(dir.path));
  CHECK_THROWS_WITH_AS(Claim there(dir.path), doctest::Contains("is in use by sweep (process 71 on elsewhere) since"),
                       Busy);
  CHECK(contains(read_file(dir / "worker.lock"), "process 71 on elsewhere"));
  left_behind(dir, "elsewhere", 61);
  CHECK_FALSE(claimed(dir.path));
  { const Claim free(dir.path); }
  CHECK_FALSE(fs::exists(dir / "worker.lock"));
}

TEST_CASE("claim: a folder that is not there, or is not a folder") {
  const TempDir dir;
  CHECK_THROWS_AS(Claim none(dir / "nowhere"), Error);
  fs::create_directory(dir / "worker.lock");
  CHECK_THROWS_AS(Claim none(dir.path), Error);
}
