// One run over several processes with a GPU each, linked by NCCL: programs beside this one under Open MPI's mpirun.
#include <chrono>
#include <filesystem>
#include <thread>

#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/gpu.h"
#include "tests/support/mpi.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

bool ready() { return gpu_or_skip("cuda") && have_mpi(); }

/// The program of the emulator, where this test is.
std::string copying() { return fs::read_symlink("/proc/self/exe").parent_path() / "copying"; }

std::vector<std::string> options(const std::string& out, const std::string& more, int steps = 6) {
  return words(
      fmt::format("--device cuda --delay 4 --batch 6 --valid-every 3 --valid-size 6 --threads 1 --quiet --no-report "
                  "--steps {} --out {} {}",
                  steps, out, more));
}

/// What is left in the emulator's folder goes with the test's.
std::string shared(const TempDir& dir) { return "REEL_EMULATOR_SHARED=" + dir.path; }

Result alone(const TempDir& dir, const std::vector<std::string>& arguments) {
  return run(copying(), arguments, dir.path);
}
Result ranks(int count, const TempDir& dir, const std::vector<std::string>& arguments,
             const std::vector<std::string>& more = {}) {
  std::vector<std::string> line{"mpirun", "-n", std::to_string(count), copying()}, environment = mpi_environment();
  line.insert(line.end(), arguments.begin(), arguments.end());
  environment.insert(environment.end(), more.begin(), more.end());
  environment.push_back(shared(dir));
  return run("/usr/bin/env", line, dir.path, environment);
}

constexpr const char* by_host = "gradients go by way of the host, which is slow: ";

}  // namespace

TEST_CASE("2 ranks with a GPU each leave what one leaves: f32, f64, complex parameters, captured or not") {
  if (!ready()) return;
  for (const char* more : {"--cell srnn --hidden 8 --accumulate 2", "--cell srnn --hidden 8 --accumulate 2 --no-graph",
                           "--cell urnn --hidden 6 --accumulate 3 --dtype f64",
                           "--cell eurnn --hidden 8 --accumulate 2 --clip-norm 0.1"}) {
    CAPTURE(more);
    const TempDir dir;
    const Result one = alone(dir, options(dir / "one", more)), two = ranks(2, dir, options(dir / "two", more));
    CHECK_MESSAGE(one.code == 0, one.err);
    CHECK_MESSAGE(two.code == 0, two.err);
    CHECK_MESSAGE(!contains(two.err, by_host), two.err);
    CHECK_MESSAGE(!contains(two.err, "kernel by kernel"), two.err);
    if (one.code == 0 && two.code == 0) CHECK(ended(dir / "one") == ended(dir / "two"));
  }
}

TEST_CASE("a run with GPUs goes on with other numbers of ranks, to the same bits") {
  if (!ready()) return;
  const TempDir dir;
  const std::string more = "--cell srnn --hidden 8 --accumulate 3";
  CHECK(alone(dir, options(dir / "whole", more, 9)).code == 0);
  CHECK(ranks(3, dir, options(dir / "cut", more, 3)).code == 0);
  CHECK(alone(dir, {"--resume", dir / "cut", "--steps", "6", "--quiet"}).code == 0);
  CHECK(ranks(2, dir, {"--resume", dir / "cut", "--steps", "9", "--quiet"}).code == 0);
  CHECK(ended(dir / "whole") == ended(dir / "cut"));
}

TEST_CASE("without NCCL, or on one GPU, the host sends the gradients: a line says so, and the bits are the same") {
  if (!ready()) return;
  const TempDir dir;
  const std::string more = "--cell srnn --hidden 8 --accumulate 2";
  CHECK(alone(dir, options(dir / "one", more)).code == 0);
  for (const auto& [variable, why] : {std::pair{"REEL_EMULATOR_NO_NCCL=1", "rank 0: [nccl] libnccl.so.2"},
                                      {"REEL_EMULATOR_GPU=0000:01:00.0", "ranks 0 and 1 compute on the same GPU"}}) {
    const std::string out = dir / std::string(variable).substr(0, 17);
    const Result two = ranks(2, dir, options(out, more), {variable});
    CHECK_MESSAGE(two.code == 0, two.err);
    CHECK_MESSAGE(contains(two.err, std::string("copying: ") + by_host + why), two.err);
    CHECK(ended(out) == ended(dir / "one"));
  }
}

TEST_CASE("a rank that is killed or hangs ends a run with GPUs within seconds, and it can be resumed") {
  if (!ready()) return;
  for (const int signal : {SIGKILL, SIGSTOP}) {
    CAPTURE(signal);
    const TempDir dir;
    const std::string out = dir / "run", more = "--cell srnn --hidden 8 --accumulate 2 --rank-patience 3";
    std::vector<std::string> line{"mpirun", "-n", "2", copying()};
    const std::vector<std::string> endless = options(out, more, 1000000);
    line.insert(line.end(), endless.begin(), endless.end());
    std::vector<std::string> environment = mpi_environment();
    environment.push_back(shared(dir));
    Child child("/usr/bin/env", line, dir.path, environment);
    for (int i = 0; i < 12000 && !fs::exists(out + "/best.safetensors"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::map<int, pid_t> pids = ranks_of(out);
    REQUIRE(pids.size() == 2);
    kill(pids.at(1), signal);
    const Result r = child.wait();
    CHECK(r.code != 0);
    CHECK_MESSAGE((signal == SIGKILL ? contains(r.err, "process rank 1") : contains(r.err, "for 3 s, after step ")),
                  r.err);
    const std::string step = std::to_string(step_of(out) + 6);
    CHECK(alone(dir, {"--resume", out, "--steps", step, "--quiet"}).code == 0);
  }
}
