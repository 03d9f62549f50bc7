// What the harness does with the disk, the screen and signals: files, the run folder, the picture,
// progress.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tasks/harness/figure.h"
#include "tasks/harness/files.h"
#include "tasks/harness/heat_map.h"
#include "tasks/harness/interrupt.h"
#include "tasks/harness/progress.h"
#include "tasks/harness/run_folder.h"
#include "tests/check.h"
#include "tests/temp_dir.h"

namespace fs = std::filesystem;
using namespace reel;
using test::contains;
using test::error_of;
using test::TempDir;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

/// What is on stderr while f runs.
std::string stderr_of(const std::function<void()>& f) {
  const TempDir dir;
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  FILE* file = std::fopen((dir / "stderr").c_str(), "w");
  dup2(fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::fclose(file);
  return read_file(dir / "stderr");
}

/// How a child process ends that runs f: its exit code, or minus the signal.
int end_of(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);  // doctest has handlers of its own
    std::signal(SIGTERM, SIG_DFL);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("files: replaced at once, errors with path and reason") {
  const TempDir dir;
  const std::string path = dir / "a.bin", bytes("x\0y\n\xff", 5);
  write_atomically(path, "a longer text that is there before");
  write_atomically(path, bytes);
  CHECK(read_file(path) == bytes);
  fs::create_directory(dir / "folder");
  CHECK(contains(error_of([&] { write_atomically(dir / "folder", "x"); }), "cannot be written: Is a directory"));
  CHECK(contains(error_of([] { write_atomically("/dev/null/x", "x"); }), "cannot be written: Not a directory"));
  CHECK(
      contains(error_of([&] { write_atomically(dir / "no/x", "x"); }), "cannot be written: No such file or directory"));
  CHECK(error_of([&] { read_file(dir / "no"); }) == "[" + dir / "no" + "] cannot be read: No such file or directory");
  CHECK(contains(error_of([&] { read_file(dir.path); }), "cannot be read: Is a directory"));
  CHECK(files_in(dir.path) == 2);  // nothing temporary stays
}

TEST_CASE("run folder: made where asked, or by task, cell and time; never over a run") {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path);
  const RunFolder first = RunFolder::create("", "copying", "srnn"), second = RunFolder::create("", "copying", "srnn");
  fs::current_path(before);
  CHECK(first.path() != second.path());
  CHECK(first.path().starts_with("runs/copying-srnn-20"));
  CHECK(first.path().size() == std::strlen("runs/copying-srnn-20261121-101500"));

  const std::string out = dir / "deep/er";
  RunFolder folder = RunFolder::create(out, "copying", "srnn");
  CHECK(folder.file("x.y") == out + "/x.y");
  CHECK(error_of([&] { RunFolder::open(out); }) == "[" + out + "] is not the folder of a run: no config.toml");
  folder.write_config("steps = 1\n");
  CHECK(read_file(out + "/config.toml") == "steps = 1\n");
  CHECK(contains(error_of([&] { RunFolder::open(out); }), "no checkpoint.safetensors"));
  write_atomically(out + "/checkpoint.safetensors", "x");
  CHECK(RunFolder::open(out).path() == out);
  CHECK(error_of([&] { RunFolder::create(out, "a", "b"); }) ==
        "[" + out + "] holds a run already. Hint: another folder for --out, or --resume " + out + ".");
  CHECK(contains(error_of([] { RunFolder::create("/dev/null/x", "a", "b"); }),
                 "[/dev/null/x] cannot be made: Not a directory"));
  CHECK(contains(error_of([] { RunFolder::create("/dev/null", "a", "b"); }), "[/dev/null"));
}

TEST_CASE("run folder: metrics survive a line that was cut, and can be taken back") {
  const TempDir dir;
  RunFolder folder = RunFolder::create(dir / "r", "a", "b");
  const std::string csv = folder.file("metrics.csv");
  CHECK(folder.rows().empty());
  const std::vector<RunFolder::Row> rows{{10, 200, 0.1, 1.0 / 3, 1e-20, 0.5, 12}, {20, 400, 1e3, 2, 0.25, 1, INFINITY}};
  for (const auto& row : rows) folder.add_row(row);
  const std::string whole = read_file(csv);
  CHECK(whole ==
        "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n"
        "10,200,0.1,0.3333333333333333,1e-20,0.5,12\n20,400,1000,2,0.25,1,inf\n");
  CHECK(folder.rows() == rows);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {  // killed while writing, at any byte
    write_atomically(csv, whole.substr(0, cut));
    const auto left = folder.rows();
    CHECK(std::equal(left.begin(), left.end(), rows.begin()));
    folder.add_row({30, 600, 1, 1, 1, nan_value, 1});
    const auto more = folder.rows();
    REQUIRE(more.size() == left.size() + 1);
    CHECK(more.back().step == 30);
    CHECK(std::isnan(more.back().accuracy));
    CHECK(read_file(csv).ends_with("\n30,600,1,1,1,,1\n"));
  }
  folder.keep_rows_up_to(19);
  CHECK(folder.rows() == std::vector{rows[0]});
  write_atomically(csv, whole + "1,2,3\n");
  CHECK(error_of([&] { (void)folder.rows(); }) == "[" + csv + ":4] is not a line of metrics");
  for (const char* bad : {"a,2,3,4,5,6,7", "1,2,3,4,5,6,7,8", "1,2,3x,4,5,6,7", ",2,3,4,5,6,7", ""}) {
    write_atomically(csv, whole + bad + "\n");
    CHECK(contains(error_of([&] { (void)folder.rows(); }), ":4] is not a line"));
  }
}

TEST_CASE("run folder: run.json has its keys, and null for what is not known") {
  const TempDir dir;
  RunFolder folder = RunFolder::create(dir / "r", "a", "b");
  folder.write_run_json({"copying", "srnn", 4833, 18446744073709551615U, 2000, 0.0945, 0.1, nan_value, 1, 12.5, 160,
                         0.005, "cpu", 2, true});
  const auto json = nlohmann::ordered_json::parse(read_file(folder.file("run.json")));
  CHECK(json == nlohmann::ordered_json::parse(R"({"task": "copying", "cell": "srnn", "parameters": 4833,
    "seed": 18446744073709551615, "steps": 2000, "baseline": 0.0945, "train_loss": 0.1, "valid_loss": null,
    "accuracy": 1.0, "seconds": 12.5, "steps_per_second": 160.0, "update_seconds": 0.005, "device": "cpu", "threads": 2, "finished": true})"));
}

TEST_CASE("figure: a picture, or a note that says why there is none") {
  const TempDir dir;
  fs::create_directory(dir / "it's");
  const std::string svg = dir / "it's/curve.svg";
  std::vector<RunFolder::Row> rows;
  CHECK(*draw_curve(svg, "t", rows, 1) == "no picture " + svg + ": there is no validation yet");
  rows.push_back({1, 20, 0, 0.5, 0.4, 0, 1});
  const std::string before = std::getenv("PATH");
  setenv("PATH", dir.path.c_str(), 1);
  CHECK(*draw_curve(svg, "t", rows, 1) == "no picture " + svg + ": gnuplot is not installed");
  setenv("PATH", before.c_str(), 1);
  const auto note = draw_curve(svg, "it's 100% \"x_1\"\n`id`", rows, 0.09);
  if (note && contains(*note, "is not installed")) return;
  CHECK(note.value_or("") == "");
  for (const double loss : {0.0, 1e-6, nan_value, 1e9}) {
    rows.push_back({2, rows.back().examples + 20, 0, loss, loss, 0, 1});
    CHECK(draw_curve(svg, "t", rows, loss).value_or("") == "");
  }
  CHECK(contains(read_file(svg), "</svg>"));
  CHECK(read_file(dir / "it's/curve.png").substr(1, 3) == "PNG");
  CHECK(files_in(dir / "it's") == 2);
  CHECK(contains(*draw_curve(dir / "no/curve.svg", "t", rows, 1), "gnuplot failed"));
}

TEST_CASE("heat map: a picture, or a note") {
  const TempDir dir;
  const std::string svg = dir / "map.svg";
  HeatMap map{"it's a 'map'", "x", "y", 2, 3, {1, 2, 3, nan_value, 5, 6}};
  map.texts = {"1", "2", "3", "", "5", "six"};
  const auto note = draw_heat_map(svg, map);
  if (note && contains(*note, "is not installed")) return;
  CHECK(note.value_or("") == "");
  CHECK(contains(read_file(svg), "six"));
  CHECK(read_file(dir / "map.png").substr(1, 3) == "PNG");
  map.values = {nan_value, nan_value, nan_value, nan_value, nan_value, nan_value};
  CHECK(contains(*draw_heat_map(svg, map), "none of the values is finite"));
  map.values = {7, 7, 7, 7, 7, 7};
  CHECK(draw_heat_map(svg, map).value_or("") == "");
  map.values.pop_back();
  CHECK(contains(*draw_heat_map(svg, map), "5 values for 2 x 3 fields"));
}

TEST_CASE("progress: what a line says, within its width") {
  ProgressView view{500, 2000, 0.013, 0.1, 50};
  CHECK(progress_line(view, 0) == "500/2000  loss 0.013 (13% of baseline)  50 steps/s  0:30 left");
  CHECK(progress_line(view, 79) == "[==>       ] 500/2000  loss 0.013 (13% of baseline)  50 steps/s  0:30 left");
  CHECK(progress_line(view, 70).starts_with("[=>    ] 500/2000"));
  CHECK(progress_line(view, 120).starts_with("[=======>                      ] 500/2000"));
  for (int width = 1; width < 200; ++width) CHECK(progress_line(view, width).size() <= static_cast<std::size_t>(width));
  view = {10, 20000, 3, 0, 0.5};
  CHECK(progress_line(view, 0) == "10/20000  loss 3  2 s/step  11:06:20 left");
  view = {20, 20, 3, nan_value, 0};
  CHECK(progress_line(view, 0) == "20/20  loss 3");
}

TEST_CASE("progress: lines where there is no terminal, nothing when quiet") {
  const auto run = [](bool quiet) {
    return stderr_of([&] {
      Progress progress(quiet, 3, 0.1);
      progress.update(1, 0.05);
      progress.validated(2, 0.04, 0.03, nan_value);
      progress.message("saved");
      progress.update(3, 0.02);
      progress.done();
    });
  };
  CHECK(run(false).starts_with(
      "step 2  train 0.04  valid 0.03 (30% of baseline)\nsaved\n3/3  loss 0.02 (20% of baseline)"));
  CHECK(run(true).empty());
}

TEST_CASE("interrupt: the first signal is a wish, the second Ctrl-C ends at once") {
  for (const int signal : {SIGINT, SIGTERM}) {
    CHECK(end_of([&] {
            const Interrupt interrupt;
            if (interrupt.requested()) return 1;
            raise(signal);
            return interrupt.requested() ? Interrupt::exit_code : 2;
          }) == 130);
  }
  CHECK(end_of([] {
          const Interrupt interrupt;
          raise(SIGINT);
          raise(SIGINT);
          return 0;
        }) == -SIGINT);
  CHECK(end_of([] {
          { const Interrupt interrupt; }
          raise(SIGTERM);
          return 0;
        }) == -SIGTERM);
}
