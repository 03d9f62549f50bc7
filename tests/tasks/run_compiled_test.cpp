// Compiled loops train as interpreted ones do, to the last bit: every cell, on one thread and on two.
#include "cells/cell.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

Result train(const TempDir& dir, const std::string& cell, const std::string& out, const std::string& mode,
             const std::string& threads, const std::string& hidden = "20") {
  const std::vector<std::string> all{
      "--cell",        cell, "--hidden",     hidden, "--batch", "5",         "--length", "9",     "--steps", "4",
      "--valid-every", "2",  "--valid-size", "5",    "--quiet", "--threads", threads,    "--out", dir / out};
  return run("adding", all, dir.path, {"REEL_COMPILE=" + mode, "XDG_CACHE_HOME=" + dir / "cache"});
}

}  // namespace

TEST_CASE("every cell trains alike, compiled and interpreted") {
  const TempDir dir;
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    for (const std::string threads : {"1", "2"}) {
      CAPTURE(threads);
      const std::string name = type.name + threads;
      // 20 units fill vectors badly, as a test should; some cells want a power of two.
      std::string hidden = "20";
      Result interpreted = train(dir, type.name, name + "-off", "off", threads, hidden);
      if (contains(interpreted.err, "a power of two"))
        interpreted = train(dir, type.name, name + "-off", "off", threads, hidden = "32");
      const Result compiled = train(dir, type.name, name + "-wait", "wait", threads, hidden);
      CHECK_MESSAGE(interpreted.code == 0, interpreted.err);
      CHECK_MESSAGE(compiled.code == 0, compiled.err);
      CHECK(train_losses(dir / (name + "-off")) == train_losses(dir / (name + "-wait")));
    }
  }
}

TEST_CASE("a folder that cannot be written and a compiler that cannot run change nothing") {
  const TempDir dir;
  const Result usual = train(dir, "lstm", "usual", "off", "1");
  CHECK(usual.code == 0);
  // No cache, and no folder for the compiler's files: the interpreter runs.
  const std::vector<std::string> environment{"REEL_COMPILE=wait", "XDG_CACHE_HOME=/proc/1/none", "TMPDIR=/proc/1/none"};
  const Result none =
      run("adding",
          {"--cell", "lstm", "--hidden", "20", "--batch", "5", "--length", "9", "--steps", "4", "--valid-every", "2",
           "--valid-size", "5", "--quiet", "--threads", "1", "--out", dir / "none"},
          dir.path, environment);
  CHECK_MESSAGE(none.code == 0, none.err);
  CHECK(train_losses(dir / "usual") == train_losses(dir / "none"));
}

TEST_CASE("REEL_COMPILE takes two words") {
  const TempDir dir;
  const Result r = train(dir, "rnn", "out", "on", "1");
  CHECK(r.code != 0);
  CHECK(contains(r.err, "it is \"off\", \"wait\" or not set, got \"on\""));
}
