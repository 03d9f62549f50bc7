// --tensorboard: the folder of the events is the same one wherever a run is resumed.
#include <filesystem>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

TEST_CASE("a run that is resumed from another folder goes on in its events") {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path);
  const Result first = run("copying",
                           {"--delay", "5", "--hidden", "4", "--batch", "2", "--valid-size", "2", "--threads", "1",
                            "--steps", "2", "--quiet", "--no-report", "--out", "s1", "--tensorboard", "events"},
                           dir.path);
  fs::current_path(dir / "s1");
  const Result resumed = run("copying", {"--resume", ".", "--steps", "4", "--quiet"}, dir.path);
  fs::current_path(before);
  CHECK_MESSAGE(first.code == 0, first.err);
  CHECK_MESSAGE(resumed.code == 0, resumed.err);
  CHECK(files_in(dir / "events/s1") == 3);  // the events of both, and run-folder.txt
  CHECK_FALSE(fs::exists(dir / "s1/events"));
}

TEST_CASE("runs of one name that begin at the same time have events of their own") {
  const TempDir dir;
  constexpr int runs = 6;
  std::vector<Child> all;
  for (int i = 0; i < runs; ++i)
    all.emplace_back("copying",
                     std::vector<std::string>{"--delay", "5", "--hidden", "4", "--batch", "2", "--valid-size", "2",
                                              "--threads", "1", "--steps", "2", "--quiet", "--no-report", "--out",
                                              dir / fmt::format("{}/s", i), "--tensorboard", dir / "events"},
                     dir.path);
  for (Child& child : all) CHECK(child.wait().code == 0);
  for (int i = 1; i <= runs; ++i)  // its events, and whose they are
    CHECK(files_in(dir / (i == 1 ? "events/s" : fmt::format("events/s-{}", i))) == 2);
  CHECK(files_in(dir / "events") == runs);
}
