// Compiled loops train as interpreted ones do, to the last bit: every cell with every choice of its settings, and on
// one thread and on two.
#include "cells/cell.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

Result train(const TempDir& dir, const std::string& cell, const std::string& out, const std::string& mode,
             const std::string& threads, const std::vector<std::string>& more, const std::string& task = "adding") {
  const std::string length = task == "adding" ? "--length" : "--delay";
  std::vector<std::string> all{"--cell",  cell,        "--batch",       "5",     length,         "9",
                               "--steps", "4",         "--valid-every", "2",     "--valid-size", "5",
                               "--quiet", "--threads", threads,         "--out", dir / out};
  all.insert(all.end(), more.begin(), more.end());
  return run(task, all, dir.path, {"REEL_COMPILE=" + mode, "XDG_CACHE_HOME=" + dir / "cache"});
}

/// Trains once with compiled loops and once without, and compares all losses. False: these settings cannot be.
bool same_losses(const TempDir& dir, const std::string& cell, const std::string& name, const std::string& threads,
                 std::vector<std::string> more, const std::string& task = "adding") {
  // 20 units fill vectors badly, as a test should; some cells need a power of two, some inputs as wide as the state.
  for (const std::string hidden : {"20", "32", "2"}) {
    more.insert(more.end(), {"--hidden", hidden});
    const Result interpreted = train(dir, cell, name + "-off", "off", threads, more, task);
    if (interpreted.code != 0) {
      CHECK_MESSAGE(contains(interpreted.err, task + ": --"), interpreted.err);  // one line about an option
      more.resize(more.size() - 2);
      continue;
    }
    const Result compiled = train(dir, cell, name + "-wait", "wait", threads, more, task);
    CHECK_MESSAGE(compiled.code == 0, compiled.err);
#if !defined(REEL_ADDRESS_SANITIZER) && !defined(REEL_THREAD_SANITIZER)  // there functors themselves round otherwise
    CHECK_MESSAGE(!contains(compiled.err, "interpreter's bits"), name << ": " << compiled.err);
#endif
    CHECK_MESSAGE(train_losses(dir / (name + "-off")) == train_losses(dir / (name + "-wait")), name);
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("cells train alike, compiled and interpreted") {
  const TempDir dir;
  for (const std::string cell : {"srnn", "gru", "goru", "nru", "enrnn"})
    CHECK_MESSAGE(same_losses(dir, cell, cell, "2", {}), cell);
}

TEST_CASE("every cell does, on one thread and on two" * doctest::skip()) {  // CTest has it as run_compiled_cells
  const TempDir dir;
  for (const CellType& type : cell_registry()) {
    for (const std::string threads : {"1", "2"})
      CHECK_MESSAGE(same_losses(dir, type.name, type.name + threads, threads, {}), type.name);
  }
}

TEST_CASE("so do cells that look up symbols") {
  const TempDir dir;
  for (const std::string cell : {"srnn", "lstm", "eurnn"})
    CHECK_MESSAGE(same_losses(dir, cell, cell, "2", {"--batch", "12"}, "copying"), cell);
}

// Four minutes: by hand, with --no-skip.
TEST_CASE("with every choice of every setting, too" * doctest::skip()) {
  const TempDir dir;
  std::string refused;
  int compared = 0;
  for (const CellType& type : cell_registry()) {
    for (const Setting& s : type.settings) {
      for (const std::string& choice : s.choices) {
        if (choice == s.fallback) continue;
        const std::string name = type.name + "." + s.name + "-" + choice;
        if (same_losses(dir, type.name, name, "1", {"--" + type.name + "." + s.name, choice}))
          ++compared;
        else
          refused += " " + name;
      }
    }
  }
  MESSAGE(compared << " compared; not on this task:" << refused);
  CHECK(compared > 100);
}

TEST_CASE("a folder that cannot be written and a compiler that cannot run change nothing") {
  const TempDir dir;
  const Result usual = train(dir, "lstm", "usual", "off", "1", {"--hidden", "20"});
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
  const Result r = train(dir, "rnn", "out", "on", "1", {});
  CHECK(r.code != 0);
  CHECK(contains(r.err, "it is \"off\", \"wait\" or not set, got \"on\""));
}
