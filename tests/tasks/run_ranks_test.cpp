// One run over several processes: programs of build/bin under Open MPI's mpirun.
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/check.h"
#include "tests/support/little_data.h"
#include "tests/support/mpi.h"
#include "tests/support/pages.h"
#include "tests/support/ranks.h"
#include "tests/support/sweeps.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// Options of a small run of any task.
Words small(const std::string& out, const std::string& more) {
  return words("--hidden 6 --batch 6 --steps 8 --valid-every 4 --valid-size 12 --threads 1 --quiet --out " + out + " " +
               more);
}

/// A run without an end on two ranks, which has validated once.
struct Endless {
  explicit Endless(const TempDir& dir, const std::string& more = "")
      : out(dir / "run"),
        child("/usr/bin/env",
              mpi_words(2, "copying",
                        words("--delay 5 --hidden 8 --batch 4 --steps 1000000 --valid-every 20 --valid-size 4 "
                              "--threads 1 --quiet --out " +
                              out + " " + more)),
              dir.path, mpi_environment()) {
    for (int i = 0; i < 12000 && !fs::exists(out + "/best.safetensors"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE(fs::exists(out + "/best.safetensors"));
    pids = ranks_of(out);
    REQUIRE(pids.size() == 2);
  }
  std::string out;
  Child child;
  std::map<int, pid_t> pids;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The run goes on, in one process and on more ranks than before, to the same bits.
void check_resumes(const TempDir& dir, const std::string& run) {
  const std::string copy = dir / "copy", end = std::to_string(step_of(run) + 30);
  fs::copy(run, copy);
  const Result one = test::run("copying", {"--resume", copy, "--steps", end, "--quiet"}, dir.path);
  CHECK_MESSAGE(one.code == 0, one.err);
  const Result two = mpi_run(2, "copying", {"--resume", run, "--steps", end, "--quiet"}, dir.path);
  CHECK_MESSAGE(two.code == 0, two.err);
  CHECK(ended(run) == ended(copy));
}

}  // namespace

TEST_CASE("every task: 2 and 4 ranks leave what one process leaves, with the same --accumulate") {
  if (!have_mpi()) return;
  const TempDir data;
  write_data(data.path);
  std::string csv = "t,a,y\n";
  for (int i = 0; i < 60; ++i) csv += fmt::format("{},{},{}\n", i, i % 7, i % 5);
  write_new(data / "rows.csv", csv);
  for (const std::string& task :
       Words{"copying --delay 4 --dropout 0.1 --layers 2", "adding --length 5", "denoising --delay 5 --length 3",
             "mnist --image crop8", "charlm --unroll 7 --valid-size 0", "music",
             "babi --task 1 --examples 1 --valid-size 1", "paths", "speech --corpus timit --examples 1 --valid-size 1",
             "table --window 5 --target y --data " + data / "rows.csv --valid-size 2"}) {
    const Words line = words(task);
    CAPTURE(task);
    const TempDir dir;
    std::string more = "--accumulate 5";
    if (line[0] != "table" && line[0] != "copying" && line[0] != "adding" && line[0] != "denoising" &&
        line[0] != "paths")
      more += " --data " + data.path;
    if (line[0] == "music" || line[0] == "mnist") more += line[0] == "mnist" ? " --examples 12" : " --valid-size 1";
    for (std::size_t i = 1; i < line.size(); ++i) more += " " + line[i];
    const Result one = run(line[0], small(dir / "one", more), dir.path);
    CHECK_MESSAGE(one.code == 0, one.err);
    const auto test_of = [&](const std::string& run) {
      return nlohmann::json::parse(read_file(dir / run + "/run.json")).value("test", nlohmann::json()).dump();
    };
    for (const int ranks : {2, 4}) {
      CAPTURE(ranks);
      const std::string name = std::to_string(ranks);
      const Result several = mpi_run(ranks, line[0], small(dir / name, more), dir.path);
      CHECK_MESSAGE(several.code == 0, several.err);
      if (one.code != 0 || several.code != 0) continue;
      CHECK(ended(dir / "one") == ended(dir / name));
      CHECK(test_of("one") == test_of(name));
    }
  }
}

TEST_CASE("a run may go on with any number of ranks and threads, to the same bits; its parts stay") {
  if (!have_mpi()) return;
  const TempDir dir;
  const std::string options = "--delay 5 --batch 10 --hidden 12 --dtype f64";
  CHECK(mpi_run(4, "copying", small(dir / "cut", options + " --steps 4"), dir.path).code == 0);  // parts: 4
  CHECK(contains(read_file(dir / "cut/config.toml"), "accumulate = 4\n"));
  CHECK(run("copying", small(dir / "whole", options + " --accumulate 4 --steps 16"), dir.path).code == 0);
  for (const auto& [ranks, steps] : {std::pair{1, "8"}, {2, "12"}, {4, "16"}}) {
    const Words resume{"--resume", dir / "cut", "--steps", steps, "--quiet", "--threads", "2"};
    const Result r = ranks == 1 ? run("copying", resume, dir.path) : mpi_run(ranks, "copying", resume, dir.path);
    CHECK_MESSAGE(r.code == 0, r.err);
    const auto record = nlohmann::json::parse(read_file(dir / "cut/run.json"));
    CHECK(record.contains("ranks") == (ranks > 1));
    CHECK(record.value("ranks", 1) == ranks);
  }
  CHECK(ended(dir / "cut") == ended(dir / "whole"));
  const Result many = mpi_run(5, "copying", {"--resume", dir / "cut", "--steps", "20"}, dir.path);
  CHECK(many.code == 2);
  CHECK_MESSAGE(contains(many.err,
                         "copying: --accumulate: 5 ranks share out the parts of a batch, and there are 4. "
                         "Hint: a run keeps its parts; resume this one on 4 ranks or fewer\n"),
                many.err);
}

TEST_CASE("a rank that is killed ends the run within seconds, and the run goes on from its checkpoint") {
  if (!have_mpi()) return;
  for (const int rank : {0, 1}) {
    const TempDir dir;
    Endless endless(dir);
    const auto start = Clock::now();
    kill(endless.pids.at(rank), SIGKILL);
    const Result r = endless.child.wait();
    CHECK(r.code != 0);
    CHECK(seconds_since(start) < 30);
    CHECK_MESSAGE(contains(r.err, fmt::format("process rank {}", rank)), r.err);  // mpirun's words
    check_resumes(dir, endless.out);
  }
}

TEST_CASE("a rank that hangs is named when the others' patience ends") {
  if (!have_mpi()) return;
  for (const int rank : {0, 1}) {
    const TempDir dir;
    Endless endless(dir, "--rank-patience 3");
    const auto start = Clock::now();
    kill(endless.pids.at(rank), SIGSTOP);
    const Result r = endless.child.wait();
    CHECK(r.code == 1);
    CHECK(seconds_since(start) < 60);
    CHECK_MESSAGE(contains(r.err, fmt::format("copying: [ranks] rank {} did not answer for 3 s, after step ", rank)),
                  r.err);
    check_resumes(dir, endless.out);
  }
}

TEST_CASE("Ctrl-C or SIGTERM on any rank: all stop after the same step, and the run is saved") {
  if (!have_mpi()) return;
  const TempDir dir;
  Endless endless(dir);
  kill(endless.pids.at(1), SIGTERM);
  const Result r = endless.child.wait();
  CHECK(r.code == 130);
  CHECK_MESSAGE(
      contains(r.err, fmt::format("interrupted at step {}; to go on: copying --resume ", step_of(endless.out))), r.err);
  check_resumes(dir, endless.out);
}

TEST_CASE("a loss that is not finite on one rank ends all, and its rank is named") {
  if (!have_mpi()) return;
  const TempDir dir;
  std::string csv = "a,y\n";
  for (int i = 0; i < 40; ++i) csv += i == 7 ? "1,1e30\n" : "1,2\n";  // its square is infinite in f32
  write_new(dir / "rows.csv", csv);
  const Result r = mpi_run(2, "table",
                           words("--data " +
                                 dir / "rows.csv --target y --window 1 --split row --standardize off "
                                       "--batch 8 --quiet --shuffle off --epochs 3 --valid-part 0.001 --out " +
                                 dir / "run"),
                           dir.path);
  CHECK(r.code == 1);
  CHECK_MESSAGE(contains(r.err, "the loss of part "), r.err);
  CHECK_MESSAGE(contains(r.err, "became inf at step "), r.err);
  CHECK_MESSAGE(fs::exists(dir / "run/run.json"), r.err);
  CHECK(nlohmann::json::parse(read_file(dir / "run/run.json"))["diverged_at_step"] > 0);
}

TEST_CASE("a full disk under rank 0 ends all with its words; the checkpoint before stays") {
  if (!have_mpi()) return;
  const TempDir dir;
  const std::string line = fmt::format(
      "{}/copying --delay 5 --hidden 8 --steps 1000000 --valid-every 20 --quiet --out {}", REEL_BIN_DIR, dir / "run");
  // prlimit acts when the run is under way: MPI's own files are in place
  Child child(
      "/usr/bin/env",
      {"mpirun", "-n", "1", "sh", "-c", "ulimit -f 4096; exec " + line, ":", "-n", "1", "sh", "-c", "exec " + line},
      dir.path, mpi_environment());
  for (int i = 0; i < 12000 && !fs::exists(dir / "run/best.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 0; i < 12000 && step_of(dir / "run") == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::map<int, pid_t> pids = ranks_of(dir / "run");
  REQUIRE(pids.contains(0));
  const rlimit little{1000, 1000};
  REQUIRE(prlimit(pids.at(0), RLIMIT_FSIZE, &little, nullptr) == 0);
  const Result r = child.wait();
  CHECK(r.code == 1);
  CHECK_MESSAGE(contains(r.err, "copying: rank 0: ["), r.err);
  CHECK_MESSAGE(contains(r.err, "File too large"), r.err);
  CHECK(step_of(dir / "run") > 0);
}

TEST_CASE("ranks with other options or data are refused, and what makes no sense is") {
  if (!have_mpi()) return;
  const TempDir dir;
  const auto said = [&](const Words& arguments) {
    const Result r = run("/usr/bin/env", arguments, dir.path, mpi_environment());
    CHECK(r.code == 2);
    return r.err;
  };
  const std::string bin = fs::absolute(REEL_BIN_DIR), copying = bin + "/copying", table = bin + "/table";
  CHECK(contains(said({"mpirun", "-n", "1", copying, "--lr", "0.1", ":", "-n", "1", copying}),
                 "copying: [ranks] all must have the same options: rank 0 has lr = 0.1, rank 1 has lr = 0.001\n"));
  const std::string rows = "a,y\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n";
  write_new(dir / "one/rows.csv", rows);
  write_new(dir / "two/rows.csv", rows + "1,100\n");
  const auto in_one_and_two = [&](const std::string& command) {  // a rank in each of the two folders
    Words words{"mpirun"};
    for (const char* folder : {"one", "two"}) {
      const std::string shell = "cd " + dir / folder + " && exec " + command;
      words.insert(words.end(), {"-n", "1", "sh", "-c", shell, ":"});
    }
    words.pop_back();
    return words;
  };
  CHECK(contains(said(in_one_and_two(table + " --data rows.csv --target y --window 1 --split row --batch 2 --quiet")),
                 "table: [ranks] all must have the same data: rank 0 has examples "));
  for (const auto& [folder, question] : {std::pair{"one", "Ann is where"}, {"two", "where is Ann"}})  // Batch::more
    for (const char* part : {"train", "valid", "test"})
      write_new(
          fmt::format("{}/babi/en-valid/qa5_{}.txt", dir / folder, part),
          fmt::format("1 Ann is where home.\n2 {}? \thome\t1\n3 Bob went out.\n4 where is Bob? \tout\t3\n", question));
  CHECK(contains(said(in_one_and_two(bin + "/babi --task 5 --size 1k --batch 2 --steps 2 --quiet --data . --out " +
                                     dir / "questions")),
                 "babi: [ranks] all must have the same data: rank 0 has examples "));
  // Of twelve sequences the last one differs: it has a step more, which is 0 in both files, or another value.
  for (const auto& [lengths, last] : {std::pair{3, 0.0F}, {2, 1.0F}}) {
    for (const bool second : {false, true}) {
      std::vector<float> x(12 * 3, 1), y;
      std::vector<std::int32_t> steps(12, 3);
      x[32] = x[35] = 0, steps[10] = steps[11] = 2;
      if (second) x[34] += last, steps[11] = lengths;
      for (int i = 0; i < 12; ++i) y.push_back(static_cast<float>(i % 5));
      save_safetensors(dir / (second ? "two/xs.safetensors" : "one/xs.safetensors"),
                       {{{"x", Tensor::from<float>(x, {12, 3, 1})},
                         {"y", Tensor::from<float>(y, {12})},
                         {"lengths", Tensor::from<std::int32_t>(steps, {12})}},
                        {}});
    }
    CHECK(contains(
        said(in_one_and_two(table + " --data xs.safetensors --standardize off --batch 2 --steps 2 --quiet --out " +
                            dir / "lengths")),
        "table: [ranks] all must have the same data: rank 0 has examples "));
  }
  CHECK(contains(said(mpi_words(2, "copying", {"--accumulate", "1"})), "Hint: --accumulate 2\n"));
  CHECK(contains(said(mpi_words(2, "sweep", {"copying"})),
                 "sweep: this program runs as one process, and 2 were started"));
  const Result help = mpi_run(2, "copying", {"--help"}, dir.path);
  CHECK(help.code == 0);
  CHECK(help.out == run("copying", {"--help"}, dir.path).out);  // once
  fs::create_directories(dir / "bin");                          // with its libraries, but for reel_mpi.so
  fs::create_directories(dir / "lib");
  fs::copy_file(copying, dir / "bin/copying");
  for (const auto& library : fs::directory_iterator(fs::canonical(bin) / "../lib"))
    if (library.path().filename() != "reel_mpi.so")
      fs::create_symlink(library.path(), fs::path(dir / "lib") / library.path().filename());
  CHECK(contains(said({"mpirun", "-n", "2", dir / "bin/copying"}), "Hint: install libopenmpi-dev and build again"));
}

TEST_CASE("threads: ranks of a machine share its cores, or are told that they do not") {
  if (!have_mpi()) return;
  const TempDir dir;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  CHECK(mpi_run(2, "copying", words("--delay 5 --steps 4 --quiet --out " + dir / "two"), dir.path).code == 0);
  const auto record = nlohmann::json::parse(read_file(dir / "two/run.json"));
  CHECK(record["threads"] <= std::max(1, cores / 2));
  const Result many =
      mpi_run(2, "copying",
              words(fmt::format("--delay 5 --steps 4 --quiet --threads {} --out {}", cores, dir / "many")), dir.path);
  CHECK(many.code == 0);
  CHECK_MESSAGE(contains(many.err, fmt::format("copying: 2 ranks with {} thread", cores)), many.err);
}

TEST_CASE("scaling.md: its commands leave the same parameters") {
  if (!have_mpi()) return;
  const TempDir dir;
  make_tree(dir);
  for (const std::string& e : mpi_environment()) putenv(strdup(e.c_str()));
  const auto blocks = commands_of(REEL_SOURCE_DIR "/docs/scaling.md");
  REQUIRE(blocks.size() == 1);
  run_block(dir, blocks[0]);
  CHECK(ended(dir / "runs/one") == ended(dir / "runs/two"));
}
