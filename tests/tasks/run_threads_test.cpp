// A resumed run and the number of threads: kept for the same results to the last bit, or a line that says what may
// differ.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/cpu/threads/cores.h"
#include "tasks/io/files.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/safetensors.h"
#include "tasks/training/threads.h"
#include "tests/support/affinity.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> small(const std::string& out, const std::string& steps, const std::string& threads) {
  std::vector<std::string> all{"--delay",       "5",  "--hidden", "16",  "--batch", "5",
                               "--valid-size",  "8",  "--cell",   "gru", "--steps", steps,
                               "--valid-every", "10", "--out",    out,   "--quiet"};
  if (!threads.empty()) all.insert(all.end(), {"--threads", threads});
  return all;
}

std::string checkpoint(const std::string& run) { return run + "/checkpoint.safetensors"; }

/// Are parameters and optimiser the same to the last bit?
bool same_end(const std::string& a, const std::string& b) {
  const TensorFile x = load_safetensors(checkpoint(a)), y = load_safetensors(checkpoint(b));
  return x.tensors.size() == y.tensors.size() && std::all_of(x.tensors.begin(), x.tensors.end(), [&](const auto& t) {
           return elements(t.second) == elements(y.at(t.first));
         });
}

int threads_of_record(const std::string& run) {
  return nlohmann::json::parse(read_file(run + "/run.json"))["threads"].get<int>();
}

}  // namespace

TEST_CASE("a resumed run keeps the number of threads of its checkpoint, on a machine of any size") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "whole", "40", "3"), dir.path).code == 0);
  CHECK(run("copying", small(dir / "cut", "20", "3"), dir.path).code == 0);
  CHECK(load_safetensors(checkpoint(dir / "cut")).metadata.at("threads") == "3");
  // as if it had begun with one for each core of a machine that has three
  std::string config = read_file(dir / "cut/config.toml");
  const std::string three = "threads = 3\n";
  REQUIRE(contains(config, three));
  write_atomically(dir / "cut/config.toml", config.replace(config.find(three), three.size(), "threads = 0\n"));
  const Result resumed = run("copying", {"--resume", dir / "cut", "--steps", "40", "--quiet"}, dir.path);
  CHECK(resumed.code == 0);
  if (available_cores() != 3)
    CHECK_MESSAGE(
        contains(resumed.err, fmt::format("threads: going on with 3, which the run has used so far, so that its "
                                          "results stay the same to the last bit; there are {} cores here\n",
                                          available_cores())),
        resumed.err);
  CHECK(same_end(dir / "whole", dir / "cut"));
  CHECK(threads_of_record(dir / "cut") == 3);
  CHECK(contains(read_file(dir / "cut/config.toml"), "threads = 0\n"));
}

TEST_CASE("--threads beside --resume: a line where the number is another one, and a new number from there on") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "a", "20", "1"), dir.path).code == 0);
  const auto resumed = [&](const std::string& threads, const std::string& steps) {
    std::vector<std::string> arguments{"--resume", dir / "a", "--steps", steps, "--quiet"};
    if (!threads.empty()) arguments.insert(arguments.end(), {"--threads", threads});
    const Result r = run("copying", arguments, dir.path);
    CHECK_MESSAGE(r.code == 0, r.err);
    return r.err;
  };
  CHECK(resumed("1", "30").empty());
  CHECK(resumed("", "40").empty());
  CHECK(resumed("2", "50") ==
        "threads: going on with 2, the run has used 1 so far. Numbers may differ in their last "
        "places from those of an uninterrupted run\n");
  CHECK(threads_of_record(dir / "a") == 2);
  CHECK(resumed("", "60").empty());
  CHECK(threads_of_record(dir / "a") == 2);
}

TEST_CASE("an old checkpoint, which does not say the number: a note") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "a", "20", ""), dir.path).code == 0);
  TensorFile file = load_safetensors(checkpoint(dir / "a"));
  file.metadata.erase("threads");
  save_safetensors(checkpoint(dir / "a"), file);
  CHECK(threads_of(checkpoint(dir / "a")) == 0);
  const Result r = run("copying", {"--resume", dir / "a", "--steps", "30", "--quiet"}, dir.path);
  CHECK(r.code == 0);
  CHECK_MESSAGE(
      contains(r.err, fmt::format("threads: going on with {}; the checkpoint, of an older version, does not say",
                                  available_cores())),
      r.err);
  CHECK(threads_of(checkpoint(dir / "a")) == available_cores());
}

TEST_CASE("how many threads, by what is asked for") {
  CHECK(choose_threads({.option = 0, .cores = 6}).count == 6);
  CHECK(choose_threads({.option = 4, .cores = 6}).count == 4);
  CHECK(choose_threads({.option = 4, .cores = 6}).note.empty());
  // resumed
  CHECK(choose_threads({.option = 0, .so_far = 8, .cores = 8}).note.empty());
  CHECK(choose_threads({.option = 0, .so_far = 8, .cores = 6}).count == 8);
  CHECK(!choose_threads({.option = 0, .so_far = 8, .cores = 6}).note.empty());
  CHECK(choose_threads({.option = 4, .so_far = 4, .cores = 6}).note.empty());  // of its config
  CHECK(choose_threads({.option = 4, .typed = true, .so_far = 4, .cores = 6}).note.empty());
  CHECK(choose_threads({.option = 4, .so_far = 8, .cores = 6}).count == 8);
  CHECK(choose_threads({.option = 4, .typed = true, .so_far = 8, .cores = 6}).count == 4);
  const Threads one_each = choose_threads({.option = 0, .typed = true, .so_far = 8, .cores = 6});
  CHECK(one_each.count == 6);
  CHECK(!one_each.note.empty());
}

TEST_CASE("results are those of the number that was asked for, with fewer cores, too") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "a", "20", "4"), dir.path).code == 0);
  const OneCore core;
  CHECK(run("copying", small(dir / "b", "20", "4"), dir.path).code == 0);
  CHECK(same_end(dir / "a", dir / "b"));
  CHECK(run("copying", small(dir / "c", "20", ""), dir.path).code == 0);
  CHECK(threads_of_record(dir / "c") == 1);
}
