// What programs do with the disk, the screen and signals: the run folder, the picture, progress.
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "tasks/app/curves.h"
#include "tasks/app/figure.h"
#include "tasks/app/heat_map.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/progress.h"
#include "tasks/app/provenance.h"
#include "tasks/app/run.h"
#include "tasks/io/files.h"
#include "tasks/io/output.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/stderr_of.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;
using namespace reel;
using test::contains;
using test::error_of;
using test::files_in;
using test::stderr_of;
using test::TempDir;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// How a child process ends that runs f: its exit code, or minus the signal.
int end_of(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);  // doctest has handlers of its own
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGHUP, SIG_DFL);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

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
  // one program at a time
  for (const auto& second :
       {error_of([&] { RunFolder::open(out); }), error_of([&] { RunFolder::create(out, "a", "b"); })})
    CHECK(second.starts_with(fmt::format("[{}] is in use by app_test (process {} on ", out, getpid())));
  CHECK(RunFolder::view(out).path() == out);
  { const RunFolder ended = std::move(folder); }
  CHECK_FALSE(fs::exists(out + "/lock"));
  // no update, no run
  CHECK(RunFolder::open(out).notes() ==
        std::vector{out + ": there is no checkpoint yet; the run starts from its config.toml"});
  CHECK(RunFolder::create(out, "a", "b").notes() ==
        std::vector{out + ": held a run that ended before its first update; it starts anew"});
  save_safetensors(out + "/checkpoint.safetensors", {{}, {{"step", "0"}}});
  CHECK(RunFolder::open(out).notes().empty());
  CHECK(RunFolder::create(out, "a", "b").notes().size() == 1);
  CHECK_FALSE(fs::exists(out + "/checkpoint.safetensors"));
  write_atomically(out + "/checkpoint.safetensors", "x");
  CHECK(RunFolder::open(out).notes().empty());
  CHECK(error_of([&] { RunFolder::create(out, "a", "b"); }) ==
        "[" + out + "] holds a run already. Hint: another folder for --out, or --resume " + out + ".");
  // what is left of a run is neither continued nor written over
  fs::remove(out + "/metrics.csv");
  CHECK(RunFolder::open(out).notes() ==
        std::vector{out +
                    "/metrics.csv: is gone or empty; the rows of earlier steps are missing, and --patience counts "
                    "from here"});
  fs::remove(out + "/config.toml");
  CHECK(contains(error_of([&] { RunFolder::create(out, "a", "b"); }), "holds the checkpoint of a run, but no config"));
  CHECK(contains(error_of([&] { RunFolder::open(out); }), "no config.toml"));
  fs::remove(out + "/checkpoint.safetensors");
  write_atomically(out + "/config.toml", "mine = 1\n");
  CHECK(contains(error_of([&] { RunFolder::create(out, "a", "b"); }), "holds a config.toml, but no run"));
  {
    RunFolder lost = RunFolder::open(out);
    lost.add_row({10, 200, 0.1, 1, 1, 1, 1});
  }
  CHECK(error_of([&] { RunFolder::create(out, "a", "b"); }) ==
        "[" + out +
            "] holds rows of a run in metrics.csv, but no checkpoint. Hint: another folder for --out, or delete this "
            "one.");
  CHECK(contains(error_of([&] { RunFolder::open(out); }), "metrics.csv has rows, but there is no checkpoint"));
  CHECK(read_file(out + "/config.toml") == "mine = 1\n");
  CHECK(contains(error_of([] { RunFolder::create("/dev/null/x", "a", "b"); }),
                 "[/dev/null/x] cannot be made: Not a directory"));
  CHECK(contains(error_of([] { RunFolder::create("/dev/null", "a", "b"); }), "[/dev/null"));
}

TEST_CASE("run folder: metrics.csv as a folder is named") {
  const TempDir dir;
  const std::string out = dir / "run";
  RunFolder::create(out, "a", "b").write_config("steps = 1\n");
  save_safetensors(out + "/checkpoint.safetensors", {.tensors = {}, .metadata = {{"step", "7"}}});
  CHECK(error_of([&] { RunFolder::open(out, 6); }) ==
        "--steps: the run in " + out + " has done 7 updates, got 6. Hint: --steps 7, or more");
  CHECK(error_of([&] { RunFolder::open(out, 7); }).empty());
  fs::remove(out + "/metrics.csv");
  fs::create_directory(out + "/metrics.csv");
  CHECK(error_of([&] { RunFolder::open(out); }) == "[" + out + "/metrics.csv] cannot be read: Is a directory");
}

TEST_CASE("run folder: a file that cannot be looked up is not taken for one that is not there") {
  const TempDir dir;
  write_atomically(dir / "config.toml", "steps = 1\n");
  fs::create_symlink("metrics.csv", dir / "metrics.csv");  // a circle
  CHECK(contains(error_of([&] { RunFolder::view(dir.path).rows(); }), "metrics.csv] cannot be looked up: "));
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
  CHECK(error_of([&] { (void)folder.rows(); }) ==
        "[" + csv + ":4] is not a line of metrics. Hint: delete this file; the run can be resumed without it");
  for (const char* bad : {"a,2,3,4,5,6,7", "1,2,3,4,5,6,7,8", "1,2,3x,4,5,6,7", ",2,3,4,5,6,7", ""}) {
    write_atomically(csv, whole + bad + "\n");
    CHECK(contains(error_of([&] { (void)folder.rows(); }), ":4] is not a line"));
  }
}

TEST_CASE("run folder: run.json has its keys, and null for what is not known") {
  const TempDir dir;
  RunFolder folder = RunFolder::create(dir / "r", "a", "b");
  folder.write_run_json({"copying", "srnn", 4833, 18446744073709551615U, 2000, 0.0945, 0.1, nan_value, 1, 12.5, 160,
                         0.005, "cpu", 2, 1, true});
  auto json = nlohmann::ordered_json::parse(read_file(folder.file("run.json")));
  CHECK(json["version"] == version());
  CHECK(json.value("commit", "") == commit());
  CHECK(json["processor"].get<std::string>() == processor());
  CHECK_FALSE(processor().empty());
  const std::string date = json["date"], now = utc_now();
  CHECK(date.size() == 20);
  CHECK(date.substr(0, 4) >= "2026");
  CHECK(date <= now);  // years first, so the order of texts is that of times
  CHECK(date.ends_with("Z"));
  CHECK_FALSE(json.contains("command"));
  for (const char* key : {"version", "commit", "processor", "date"}) json.erase(key);
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
  CHECK(contains(read_file(svg), "viewBox=\"0 0 900 540\""));
  CHECK(draw_curve(svg, "t", rows, 0.09, {.width = 8.4, .height = 5.2}).value_or("") == "");
  CHECK_FALSE(contains(read_file(svg), "viewBox=\"0 0 900 540\""));
  CHECK(contains(read_file(svg), "</svg>"));
  CHECK(read_file(dir / "it's/curve.png").substr(1, 3) == "PNG");
  CHECK(files_in(dir / "it's") == 3);
  CHECK(contains(error_of([&] { (void)draw_curve(dir / "no/curve.svg", "t", {rows[0]}, 1); }),
                 "no/curve.svg] cannot be written: No such file or directory"));
}

TEST_CASE("figure: names are drawn as they are, whatever they mean to gnuplot") {
  const TempDir dir;
  const std::string evil =
      "%s %d 100% 'it''s' \"q\" `touch BT` $(touch SH) | <b> & {/=40 a}_b^c @x \\n ~ \xff\n\x1b</svg>";
  CurvesPicture picture{evil, evil, evil, {{evil, {{1, 2}, {2, 3}}}, {std::string(3000, 'n'), {{1, 1}}}}};
  const auto note = draw_curves(dir / "|touch PIPE;.svg", picture);
  if (note && contains(*note, "is not installed")) return;
  CHECK(note.value_or("") == "");
  const std::string svg = read_file(dir / "|touch PIPE;.svg");
  for (const char* part :
       {"%s %d 100% 'it''s'", "`touch BT` $(touch SH) | &lt;b> &amp; {/=40 a}_b^c @x \\n ~ ", "&lt;/svg>"})
    CHECK_MESSAGE(contains(svg, part), part);
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(draw_bars(dir / "bars.svg", evil, evil, {{evil, 1, 2, nan_value}, {"%", 2, 3, 1}}).value_or("") == "");
  CHECK(contains(read_file(dir / "bars.svg"), "%s %d 100% "));
  HeatMap map{evil, evil, evil, 1, 1, {1}};
  map.row_names = map.column_names = map.texts = {evil};
  CHECK(draw_heat_map(dir / "map.svg", map).value_or("") == "");
  CHECK(contains(read_file(dir / "map.svg"), "%s %d 100% "));
  CHECK(files_in(dir.path) == 9);
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

TEST_CASE("output: names that are safe in a line and on a shell's command line") {
  CHECK(one_line("a\nb\tc\x1b[31mé") == "a\\nb\\tc\\x1b[31mé");
  CHECK(shell_path("runs/a-b_1.0") == "runs/a-b_1.0");
  const TempDir dir;
  for (const std::string path : {"a b", "it's", "$(touch x)", "`id`", "~", "-x", "a\nb'\\c", "", "é;|&"}) {
    const std::string script = "printf %s " + shell_path(path) + " >" + shell_path(dir / "out");
    REQUIRE(std::system(("bash -c " + shell_path(script)).c_str()) == 0);
    CHECK(read_file(dir / "out") == (path == "-x" ? "./-x" : path));
  }
}

TEST_CASE("a program whose function makes no task says so in one line") {
  int code = 0;
  const char* const words[] = {"mine"};
  const auto no_task = [](const Setup&) { return std::unique_ptr<Task>(); };
  TaskProgram program{.name = "mine", .description = "none", .options = {}, .task = no_task};
  CHECK(stderr_of([&] { code = run_task(1, words, program); }) == "mine: [mine] TaskProgram::task returned no task\n");
  CHECK(code == 2);
  program.task = nullptr;
  CHECK(stderr_of([&] { code = run_task(1, words, program); }) ==
        "mine: [mine] TaskProgram::task is missing: the function that makes the task\n");
  CHECK(code == 2);
  program.task = [](const Setup&) -> std::unique_ptr<Task> { throw 7; };
  CHECK(stderr_of([&] { code = run_task(1, words, program); }) ==
        "mine: unknown exception: what was thrown is no std::exception\n");
  CHECK(code == 1);
}

TEST_CASE("progress: what a line says, within its width") {
  ProgressView view{500, 2000, 0.013, 0.1, 50};
  CHECK(progress_line(view, 0) == "500/2000  loss 0.013 (13% of baseline)  50 steps/s  0:30 left");
  CHECK(progress_line(view, 79) == "[==>       ] 500/2000  loss 0.013 (13% of baseline)  50 steps/s  0:30 left");
  CHECK(progress_line(view, 70).starts_with("[=>    ] 500/2000"));
  CHECK(progress_line(view, 120).starts_with("[=======>                      ] 500/2000"));
  for (int width = 1; width < 200; ++width) CHECK(progress_line(view, width).size() <= static_cast<std::size_t>(width));
  for (const auto& [width, line] : {std::pair{7, ""},
                                    {8, "500/2000"},
                                    {19, "500/2000"},
                                    {20, "500/2000  loss 0.013"},
                                    {37, "500/2000  loss 0.013"},
                                    {49, "500/2000  loss 0.013 (13% of baseline)"}})
    CHECK(progress_line(view, width).ends_with(line));
  view = {10, 20000, 3, 0, 0.5};
  CHECK(progress_line(view, 0) == "10/20000  loss 3  2 s/step  11:06:20 left");
  view.ending = true;
  CHECK(progress_line(view, 0) == "10/20000  loss 3  2 s/step");
  view = {20, 20, 3, nan_value, 0};
  CHECK(progress_line(view, 0) == "20/20  loss 3");
}

TEST_CASE("a line of a terminal: a shorter text leaves nothing of a longer one, without escape sequences if need be") {
  const auto shown = [](const char* term) {
    setenv("TERM", term, 1);
    return stderr_of([] {
      TerminalLine line;
      for (const char* text : {"123456", "123"}) line.show(text);
      line.clear();
      line.clear();
      line.show("12");
      line.leave();
    });
  };
  const char* before = std::getenv("TERM");
  const std::string kept = before ? before : "";
  CHECK(shown("xterm") == "\r123456\x1b[K\r123\x1b[K\r\x1b[K\r12\x1b[K\n");
  CHECK(shown("dumb") == "\r123456\r123   \r   \r\r12\n");
  setenv("TERM", kept.c_str(), 1);
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

TEST_CASE("interrupt: the first signal is a wish, the second Ctrl-C ends at once, unless it is the same wish") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
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
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          raise(SIGINT);
          return 0;
        }) == -SIGINT);
  CHECK(end_of([] {  // timeout(1) sends it twice; the second one may come while the program ends
          {
            const Interrupt interrupt;
            for (int i = 0; i < 3; ++i) raise(SIGTERM);
          }
          raise(SIGTERM);
          return 3;
        }) == 3);
  CHECK(end_of([] {  // the one after a wish knows nothing of it
          {
            const Interrupt interrupt;
            raise(SIGTERM);
          }
          {
            const Interrupt interrupt;
            if (interrupt.requested()) return 1;
          }
          raise(SIGTERM);
          return 0;
        }) == -SIGTERM);
  CHECK(end_of([] {
          { const Interrupt interrupt; }
          raise(SIGTERM);
          return 0;
        }) == -SIGTERM);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {  // nohup, or a job that a script has put in the background
    CHECK(end_of([&] {
            std::signal(signal, SIG_IGN);
            const Interrupt interrupt;
            raise(signal);
            return interrupt.requested() ? 1 : 0;
          }) == 0);
  }
}
