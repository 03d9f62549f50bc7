// A run folder has one owner: what another program has left there is not written over, and a run whose folder was moved
// away writes neither into what has taken its place nor removes its lock.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tasks/app/run_folder.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

std::string refusal(const std::string& out) {
  return error_of([&] { RunFolder::create(out, "copying", "srnn"); });
}

/// The folder of a run of Python before its first row, and with no model.json.
void begin_in_python(const std::string& out) {
  fs::create_directories(out);
  write_atomically(out + "/config.toml", "");
  write_atomically(out + "/metrics.csv", "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n");
}

}  // namespace

TEST_CASE("a run of Python is not written over: it has its parameters in best.safetensors, and no checkpoint") {
  const TempDir dir;
  const std::string out = dir / "run";
  begin_in_python(out);
  CHECK(refusal(out).empty());
  save_safetensors(out + "/best.safetensors", {{{"a", Tensor::zeros({2})}}, {}});
  CHECK(refusal(out) == "[" + out +
                            "] holds the best.safetensors of a run, but no checkpoint. Hint: another folder for --out, "
                            "or delete this one.");
  fs::remove(out + "/best.safetensors");
  write_atomically(out + "/run.json", R"({"steps": 0})");
  CHECK(refusal(out).empty());
  write_atomically(out + "/run.json", R"({"steps": 40})");
  CHECK(contains(refusal(out), "holds the run.json of a run"));
  fs::remove(out + "/run.json");
  write_atomically(out + "/model.json", R"({"task": "copying"})");
  CHECK(refusal(out).empty());
  write_atomically(out + "/model.json", R"({"task": ""})");
  CHECK(refusal(out) == "[" + out + "] holds a run of Python's reel.train. Hint: another folder for --out.");
}

TEST_CASE("the owner of a folder that was moved away writes no more, and leaves the lock of another alone") {
  const TempDir dir;
  const std::string out = dir / "run";
  const RunFolder::Row row{1, 2, 0.1, 1, 1, 1, 1};
  {
    RunFolder first = RunFolder::create(out, "copying", "srnn");
    first.add_row(row);
    fs::rename(out, dir / "moved");
    CHECK(contains(error_of([&] { first.add_row(row); }), "[" + out + "] is not the folder of this run any more"));
    RunFolder second = RunFolder::create(out, "copying", "srnn");
    RunRecord record;
    CHECK(contains(error_of([&] { first.add_row(row); }), "not the folder of this run"));
    CHECK(contains(error_of([&] { first.write_run_json(record); }), "not the folder of this run"));
    CHECK(contains(error_of([&] { first.update_run_json(record, true); }), "not the folder of this run"));
    CHECK(contains(error_of([&] { first.keep_rows_up_to(0); }), "not the folder of this run"));
    CHECK(contains(error_of([&] { first.write_config("steps = 1\n"); }), "not the folder of this run"));
    { const RunFolder ended = std::move(first); }
    CHECK(fs::exists(out + "/lock"));
    second.add_row(row);
    CHECK(second.rows().size() == 1);
  }
  CHECK_FALSE(fs::exists(out + "/lock"));
  CHECK(RunFolder::rows_in("", read_file(dir / "moved/metrics.csv")).size() == 1);
}

TEST_CASE("two programs, the folder of the first moved away: the first ends with an error, the second is undisturbed") {
  const TempDir dir, other;
  const std::string out = dir / "run";
  const auto train = [&](const std::string& steps, const std::string& every, const TempDir& in) {
    return Child("copying",
                 {"--delay", "5", "--hidden", "4", "--batch", "2", "--valid-size", "2", "--threads", "1", "--quiet",
                  "--steps", steps, "--valid-every", every, "--out", out},
                 in.path);
  };
  Child first = train("100000000", "5000", dir);  // far more time between validations than in one
  const auto has_best = [&] { return fs::exists(out + "/best.safetensors"); };
  for (int i = 0; i < 3000 && !has_best(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(has_best());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it goes on training
  first.send(SIGSTOP);
  fs::rename(out, dir / "moved");
  Child second = train("60", "20", other);
  CHECK(second.wait().code == 0);
  const std::string metrics = read_file(out + "/metrics.csv");
  first.send(SIGCONT);
  const Result moved = first.wait();
  CHECK(moved.code == 1);
  CHECK_MESSAGE(contains(moved.err, "copying: [" + out + "] is not the folder of this run any more"), moved.err);
  CHECK(read_file(out + "/metrics.csv") == metrics);
  CHECK(RunFolder::view(out).rows().size() == 3);
}

TEST_CASE("a row is added to metrics.csv without reading what is there, behind its last whole line") {
  const TempDir dir;
  RunFolder folder = RunFolder::create(dir / "run", "copying", "srnn");
  const std::string csv = folder.file("metrics.csv");
  const RunFolder::Row row{1, 2, 0.1, 1, 1, 1, 1};
  for (const std::string& end : {std::string("\ncut"), "\n" + std::string(10'000, '4')}) {
    constexpr std::uintmax_t size = std::uintmax_t{1} << 26;
    fs::resize_file(csv, 0);
    fs::resize_file(csv, size);
    std::ofstream(csv, std::ios::app) << end;
    folder.add_row(row);
    CHECK(fs::file_size(csv) == size + std::string("\n1,2,0.1,1,1,1,1\n").size());
    CHECK(read_end(csv, 17) == "\n1,2,0.1,1,1,1,1\n");
  }
  fs::resize_file(csv, 0);
  fs::resize_file(csv, std::uintmax_t{1} << 40);  // no memory holds it
  std::ofstream(csv, std::ios::app) << "\n";
  folder.add_row(row);
  CHECK(read_end(csv, 17) == "\n1,2,0.1,1,1,1,1\n");
}

TEST_CASE("--resume: what a killed run left of its files goes, a user's files stay") {
  const TempDir dir;
  const std::string out = dir / "run";
  RunFolder::create(out, "copying", "srnn").write_config("steps = 1\n");
  const std::vector<std::string> theirs{".notes.tmp", ".plan.txt.tmp", ".report.html.old.tmp"},
      ours{".report.html.tmp", ".metrics.csv.tmp", ".checkpoint.safetensors.tmp", ".states-h.png.tmp"};
  for (const auto& names : {theirs, ours})
    for (const std::string& name : names) write_atomically(out + "/" + name, "x");
  RunFolder::open(out);
  for (const std::string& name : theirs) CHECK_MESSAGE(fs::exists(out + "/" + name), name);
  for (const std::string& name : ours) CHECK_FALSE_MESSAGE(fs::exists(out + "/" + name), name);
}
