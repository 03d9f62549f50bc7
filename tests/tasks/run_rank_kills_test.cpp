// kill -9 of each rank at 20 moments from start to end: all ranks end within seconds with a line that names it, and the
// run goes on to the bits of one that nobody killed. Minutes: its label is slow.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/support/check.h"
#include "tests/support/mpi.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int ranks = 3, moments = 20, every = 4;

void pause(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

Words options(const std::string& out) {
  return words(
      fmt::format("--delay 5 --hidden 8 --batch 6 --valid-size 6 --threads 1 --quiet --no-report --steps {} "
                  "--valid-every {} --out {}",
                  moments * every, every, out));
}

std::int64_t rows_of(const std::string& run) {
  if (!fs::exists(run + "/metrics.csv")) return 0;
  const std::string text = read_file(run + "/metrics.csv");
  return std::count(text.begin(), text.end(), '\n') - 1;
}

struct Kill {
  double seconds = 0;  // from the kill to the end of mpirun
  std::string said;
  bool late = false;  // the run was over
};
/// Starts the run, and kills the rank some milliseconds after its validation of this number; 0: after its start.
Kill kill_at(const TempDir& dir, const std::string& out, int rank, int validations, double ms) {
  Child child("/usr/bin/env", mpi_words(ranks, "copying", options(out)), dir.path, mpi_environment());
  std::map<int, pid_t> pids;
  for (int i = 0; i < 60000 && !pids.contains(rank); ++i) pids = ranks_of(out), pause(1);
  REQUIRE(pids.contains(rank));
  while (rows_of(out) < validations && fs::exists(fmt::format("/proc/{}/exe", pids.at(rank)))) pause(0.2);
  pause(ms);
  const auto start = Clock::now();
  const bool there = kill(pids.at(rank), SIGKILL) == 0;
  const Result r = child.wait();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {seconds, r.err, !there || r.code == 0};
}

}  // namespace

TEST_CASE("a rank that is killed at any moment") {
  if (!have_mpi()) return;
  const TempDir dir;
  REQUIRE(mpi_run(ranks, "copying", options(dir / "whole"), dir.path).code == 0);
  const std::string whole = ended(dir / "whole");
  std::vector<double> seconds;
  int late = 0, named = 0, begun = 0, kept = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int m = 0; m < moments; ++m) {
      CAPTURE(rank);
      CAPTURE(m);
      const std::string out = dir / fmt::format("r{}-{}", rank, m);
      const Kill k = kill_at(dir, out, rank, m, (7 * m + 3 * rank) % 10);
      if (k.late) {
        ++late;
      } else {
        seconds.push_back(k.seconds);
        CHECK_MESSAGE(k.seconds < 15, k.said);
        const bool named_here = contains(k.said, fmt::format("process rank {}", rank));
        named += named_here;
        // Before it has joined the others mpirun only counts it.
        const bool counted = !fs::exists(out) && contains(k.said, "1 process returned");
        CHECK_MESSAGE((named_here || counted), k.said);
      }
      for (int i = 0; i < 5000 && !ranks_of(out).empty(); ++i) pause(1);  // mpirun does not wait for what it kills
      CHECK(ranks_of(out).empty());
      const bool checkpoint = fs::exists(out + "/checkpoint.safetensors");
      checkpoint ? ++kept : ++begun;
      const int now = m % 3 == 0 ? 1 : m % 3 + 1;  // ranks that go on: 1, 2, 3
      const Words more = checkpoint ? Words{"--resume", out, "--steps", std::to_string(moments * every), "--quiet"}
                                    : words("--accumulate 3");
      Words line = more;
      if (!checkpoint) {
        fs::remove_all(out);
        for (const std::string& word : options(out)) line.push_back(word);
      }
      const Result r = now == 1 ? run("copying", line, dir.path) : mpi_run(now, "copying", line, dir.path);
      CHECK_MESSAGE(r.code == 0, r.err);
      if (r.code == 0) CHECK(ended(out) == whole);
      fs::remove_all(out);
    }
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print(
      "{} kills, {} of them after the end; {} named the rank; seconds to the end of all: median {:.2f}, most {:.2f}; "
      "{} runs went on from a checkpoint, {} had none yet\n",
      ranks * moments, late, named, seconds.at(seconds.size() / 2), seconds.back(), kept, begun);
}
