// sweep when things go wrong: workers and sweeps that are killed, two at once, Ctrl-C, a full disk; and its engines,
// with programs in the place of Slurm's.
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/support/sweeps.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

const std::string grid = "cell=lstm,gru lr=1e-2,1e-3";

void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

/// The outcome of a sweep that nobody disturbed.
std::map<std::string, std::string> undisturbed(const std::string& more, const std::string& steps) {
  const TempDir dir;
  const Result r = run("sweep", small_sweep(grid, dir / "s", more, steps), dir.path);
  REQUIRE(r.code == 0);
  return outcome(dir / "s");
}

/// Waits until a file is there; two minutes, as sanitizers and a busy machine slow programs down.
void wait_for(const std::string& file) {
  for (int i = 0; i < 12000 && !fs::exists(file); ++i) pause(10);
  REQUIRE(fs::exists(file));
}

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

/// A program in a folder that comes first in the search path.
std::string with_program(const TempDir& dir, const std::string& name, const std::string& script) {
  fs::create_directories(dir / "bin");
  write_atomically(dir / ("bin/" + name), "#!/bin/sh\n" + script);
  fs::permissions(dir / ("bin/" + name), fs::perms::owner_all);
  return "PATH=" + dir / "bin:" + std::getenv("PATH");
}

}  // namespace

TEST_CASE("sweep: whatever is killed at whatever moment, the same command comes to the same end") {
  const std::string more = "--seeds 2 --jobs 2", steps = "400";
  const auto whole = undisturbed(more, steps);
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    const TempDir dir, here;
    const Words line = small_sweep(grid, dir / "s", more, steps);
    for (int kills = 0; kills < 4; ++kills) {
      Child child("sweep", line, here.path);
      pause(static_cast<int>(random() % 500));
      if (kills % 2 == 0) child.send(SIGKILL);  // the next call may meet its programs
      if (kills % 2 == 1) kill_processes_of(dir.path);
      child.wait();
    }
    const Result r = run("sweep", line, here.path);
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    CHECK(outcome(dir / "s") == whole);
    for (const auto& entry : fs::recursive_directory_iterator(dir.path))
      CHECK_MESSAGE(entry.path().extension() != ".tmp", entry.path().string());
  }
}

TEST_CASE("sweep: with halving, too") {
  const std::string more = "--seeds 2 --halving 2 --jobs 2", steps = "400";
  const auto whole = undisturbed(more, steps);
  const TempDir dir, here;
  for (int kills = 0; kills < 5; ++kills) {
    Child child("sweep", small_sweep(grid, dir / "s", more, steps), here.path);
    pause(150 + 100 * kills);
    kill_processes_of(dir.path);
    child.wait();
  }
  const Result r = run("sweep", small_sweep(grid, dir / "s", more, steps), here.path);
  CAPTURE(r.out);
  CAPTURE(r.err);
  CHECK(r.code == 0);
  CHECK(outcome(dir / "s") == whole);
}

TEST_CASE("sweep: two in one folder at once share the runs, and both come to the whole") {
  const auto whole = undisturbed("--seeds 2", "200");
  const TempDir dir, here, there;
  const Words line = small_sweep(grid, dir / "s", "--seeds 2 --jobs 1", "200");
  Child first("sweep", line, here.path), second("sweep", line, there.path);
  for (Child* child : {&first, &second}) {
    const Result r = child->wait();
    CAPTURE(r.err);
    CHECK(r.code == 0);
    CHECK(contains(r.out, "8 of 8 runs done\n"));
  }
  CHECK(outcome(dir / "s") == whole);
  for (const auto& entry : fs::directory_iterator(dir / "s/runs"))  // once each: nobody resumed another's run
    CHECK_FALSE(contains(read_file(entry.path() / "run.json"), "--resume"));
}

TEST_CASE("sweep: Ctrl-C ends the runs, which are saved; the same command, or the folder, goes on") {
  const TempDir dir, here;
  const std::string out = dir / "s";
  Child child("sweep", small_sweep("cell=lstm,gru", out, "--jobs 2", "30000"), here.path);
  wait_for(out + "/runs/cell=lstm,s1/checkpoint.safetensors");
  pause(300);
  child.send(SIGINT);
  const Result stopped = child.wait();
  CHECK(stopped.code == 130);
  CHECK(contains(stopped.err, "interrupted; to go on: sweep " + out));
  CHECK(kill_processes_of(out) == 0);
  const auto record = nlohmann::json::parse(read_file(out + "/runs/cell=lstm,s1/run.json"));
  CHECK(record["finished"] == false);
  CHECK(record["steps"] > 0);
  const Result gathered = run("sweep", {out, "--gather"}, here.path);
  CHECK(gathered.code == 0);
  CHECK(contains(gathered.out, "0 of 2 runs done\n"));
}

TEST_CASE("sweep: when it is killed, the programs that it started save and end") {
  const TempDir dir, here;
  Child child("sweep", small_sweep("cell=lstm,gru", dir / "s", "--jobs 2", "10000000"), here.path);
  for (const char* run : {"cell=lstm,s1", "cell=gru,s1"})
    wait_for(dir / ("s/runs/" + std::string(run) + "/metrics.csv"));
  pause(1000);
  child.send(SIGKILL);
  child.wait();
  for (const char* run : {"cell=lstm,s1", "cell=gru,s1"}) {
    wait_for(dir / ("s/runs/" + std::string(run) + "/run.json"));
    CHECK(nlohmann::json::parse(read_file(dir / ("s/runs/" + std::string(run) + "/run.json")))["finished"] == false);
  }
  for (int i = 0; i < 1000 && fs::exists(dir / "s/runs/cell=gru,s1/lock"); ++i) pause(10);
  pause(500);
  CHECK(kill_processes_of(dir.path) == 0);
}

TEST_CASE("sweep: a full disk is told, loses nothing, and the next call goes on") {
  const auto whole = undisturbed("", "60");
  const TempDir dir, here;
  const std::string out = dir / "s";
  // a limit of file sizes is a disk that is full from there on: sweep.json fits, checkpoints do not
  const Result full = run("sweep", small_sweep(grid, out, "--jobs 2", "60"), here.path, {}, {{RLIMIT_FSIZE, 3000}});
  CAPTURE(full.out);
  CAPTURE(full.err);
  CHECK(full.code == 1);
  CHECK(contains(full.out, "checkpoint.safetensors] cannot be written: File too large"));
  CHECK(contains(full.out, "0 of 4 runs done, 4 failed\n"));
  CHECK(run("sweep", {out}, here.path).code == 0);
  CHECK(outcome(out) == whole);

  const Result nothing = run("sweep", small_sweep(grid, dir / "t", "", "60"), here.path, {}, {{RLIMIT_FSIZE, 1000}});
  CHECK(nothing.code == 1);
  CHECK(contains(nothing.err, "sweep.json] cannot be written: File too large"));
}

TEST_CASE("sweep --worker: does one run, or all that are free; the folder may be named from anywhere") {
  const TempDir dir, here;
  const std::string out = dir / "s";
  const auto env = with_program(here, "sbatch", "echo 7\n");
  with_program(here, "squeue", "true\n");
  REQUIRE(run("sweep", small_sweep(grid, out, "--engine slurm", "40"), here.path, {env}).code == 0);
  const Result third = run("sweep", {out, "--worker", "3"}, here.path);
  CHECK(third.code == 0);
  CHECK(contains(third.out, "cell=gru,lr=1e-2,s1: done in "));
  CHECK(contains(run("sweep", {out, "--worker", "3"}, here.path).out, "there is nothing to do"));
  CHECK(run("sweep", {out, "--worker", "5"}, here.path).code == 2);
  CHECK(contains(run("sweep", {out, "--gather"}, here.path).out, "1 of 4 runs done\n"));
  CHECK(run("sweep", {out, "--worker", "0"}, here.path).code == 0);
  CHECK(contains(run("sweep", {out, "--gather"}, here.path).out, "4 of 4 runs done\n"));
}

TEST_CASE("sweep --engine slurm: one array; what is queued is not submitted again; rungs wait for one another") {
  const TempDir dir, here;
  const std::string out = dir / "s s%";
  const auto env =
      with_program(here, "sbatch", "echo \"$@\" >>" + here.path + "/calls\nwc -l <" + here.path + "/calls\n");
  with_program(here, "squeue", "cat " + here.path + "/queue\n");
  write_atomically(here / "queue", "");
  const Words more{"--engine",  "slurm", "--partition", "long",           "--time", "2:00:00", "--gpus",    "a100:1",
                   "--account", "me",    "--sbatch",    "mem=2G qos=low", "--jobs", "2",       "--threads", "3"};
  Words line = small_sweep(grid, out, "", "40");
  line.insert(line.begin() + 5, more.begin(), more.end());
  const auto sweep = [&](const Words& words) { return run("sweep", words, here.path, {env}); };
  const Result first = sweep(line);
  CAPTURE(first.err);
  CHECK(first.code == 0);
  CHECK(contains(first.out, "4 runs submitted, job 1\n"));
  CHECK(read_file(out + "/slurm/1.sh") ==
        "#!/bin/sh\n#SBATCH --job-name=sweep-copying\n#SBATCH --array=0-3%2\n#SBATCH --ntasks=1 --cpus-per-task=3\n"
        "#SBATCH --requeue --open-mode=append\n#SBATCH --signal=B:TERM@60\n#SBATCH --partition=long\n"
        "#SBATCH --time=2:00:00\n#SBATCH --gpus=a100:1\n#SBATCH --account=me\n#SBATCH --mem=2G\n#SBATCH --qos=low\n"
        "exec " REEL_BIN_DIR "/sweep '" +
            out + "' --worker $((SLURM_ARRAY_TASK_ID + 1))\n");
  CHECK(contains(read_file(here / "calls"),
                 "--parsable --output=" + dir / "s s%%/slurm/%A_%a.txt " + out + "/slurm/1.sh"));

  write_atomically(here / "queue", "1_0\n1_3\n9_1\n");  // the engine of the first call is kept
  CHECK(contains(sweep({out}).out, "2 runs queued already\n2 runs submitted, job 2\n"));
  CHECK(contains(read_file(out + "/slurm/2.sh"), "--array=1-2%2\n"));
  for (const char* number : {"1", "2", "3", "4"}) CHECK(sweep({out, "--worker", number}).code == 0);
  write_atomically(here / "queue", "");
  CHECK(contains(sweep({out}).out, "4 of 4 runs done\n"));

  Words halving = small_sweep(grid, dir / "h", "--halving 2 --engine slurm", "40");
  CHECK(contains(sweep(halving).out, "4 runs submitted, jobs 3, 4, 5\n"));
  CHECK(contains(read_file(here / "calls"), "--dependency=afterany:3 " + dir / "h/slurm/2.sh"));
  CHECK(contains(read_file(here / "calls"), "--dependency=afterany:4 " + dir / "h/slurm/3.sh"));
  write_atomically(here / "queue", "3_0\n");
  CHECK(contains(sweep({dir / "h"}).out, "1 run queued already\n"));
  for (int rung = 0; rung < 3; ++rung)
    for (const char* number : {"1", "2", "3", "4"}) CHECK(sweep({dir / "h", "--worker", number}).code == 0);
  CHECK(contains(sweep({dir / "h", "--gather"}).out, "1 of 4 runs done, 3 dropped\n"));

  with_program(here, "sbatch", "echo 'sbatch: error: invalid partition specified: long' >&2; exit 1\n");
  const Result refused = sweep(small_sweep(grid, dir / "r", "--engine slurm", "40"));
  CHECK(refused.code == 1);
  CHECK(refused.err == "sweep: [--engine slurm] sbatch: sbatch: error: invalid partition specified: long\n");
  if (installed("sbatch")) return;
  const Result missing = run("sweep", small_sweep(grid, dir / "m", "--engine slurm", "40"), here.path);
  CHECK(missing.code == 1);
  CHECK(contains(missing.err, "sbatch is not installed. Hint: run it on a machine that submits jobs"));
}

TEST_CASE("sweep --engine parallel: the same results; Ctrl-C reaches the runs") {
  const TempDir dir, here;
  if (!installed("parallel")) {
    const Result missing = run("sweep", small_sweep(grid, dir / "m", "--engine parallel", "40"), here.path);
    CHECK(missing.code == 1);
    CHECK(contains(missing.err, "GNU parallel is not installed. Hint: install the package parallel"));
    return;
  }
  const auto whole = undisturbed("", "40");
  const std::string home = "HOME=" + here.path;  // where GNU parallel keeps files
  const Result r = run("sweep", small_sweep(grid, dir / "s", "--engine parallel --jobs 2", "40"), here.path, {home});
  CAPTURE(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "4 of 4 runs done\n"));
  CHECK(outcome(dir / "s") == whole);

  Child child("sweep", small_sweep("cell=lstm,gru", dir / "t", "--engine parallel --jobs 2", "30000"), here.path,
              {home});
  wait_for(dir / "t/runs/cell=lstm,s1/checkpoint.safetensors");
  pause(300);
  child.send(SIGINT);
  CHECK(child.wait().code == 130);
  CHECK(kill_processes_of(dir / "t") == 0);
  CHECK(nlohmann::json::parse(read_file(dir / "t/runs/cell=lstm,s1/run.json"))["steps"] > 0);
}

TEST_CASE(
    "sweep --halving: a metric that it cannot rank by is refused in later calls, too; the page marks a whole run") {
  const TempDir dir, here;
  const auto sweep = [&](const Words& line) { return run("sweep", line, here.path); };
  const std::string out = dir / "h";
  REQUIRE(sweep(small_sweep("lr=1e-2,1e-3,1e-4", out, "--halving 3", "180")).code == 0);
  const std::string stored = read_file(out + "/sweep.json");
  for (const Words& more : {Words{}, Words{"--gather"}}) {
    Words line{out, "--metric", "test.accuracy"};
    line.insert(line.end(), more.begin(), more.end());
    const Result r = sweep(line);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "--metric test.accuracy: --halving ranks runs by what is in metrics.csv"));
  }
  CHECK(read_file(out + "/sweep.json") == stored);
  // a run that was dropped seems to be better than the one that went to the end
  for (const auto& entry : fs::directory_iterator(out + "/runs")) {
    const std::string csv = read_file(entry.path() / "metrics.csv");
    if (std::count(csv.begin(), csv.end(), '\n') > 9) continue;
    write_atomically(entry.path() / "metrics.csv", csv.substr(0, csv.find('\n') + 1) + "20,40,1,1,0.0001,,1\n");
  }
  REQUIRE(sweep({out, "--gather"}).code == 0);
  REQUIRE(run("report", {out, "--out", dir / "h.html"}, here.path).code == 0);
  for (const std::string& page : {out + "/report.html", dir / "h.html"}) {
    const std::string html = read_file(page);
    const std::size_t table = html.find("\"key\":\"groups\""), first = html.find("\"cells\":", table);
    CHECK(contains(html.substr(first, html.find('}', first) - first), "steps 180"));
    CHECK(contains(html.substr(first, html.find('}', first) - first), "\"best\":true"));
  }
}

TEST_CASE(
    "sweep: combinations with failed runs, or runs that never solve the task, rank last; updates are of the others") {
  const TempDir dir, here;
  const auto sweep = [&](const Words& line) { return run("sweep", line, here.path); };
  const std::string out = dir / "s";
  REQUIRE(sweep(small_sweep("lr=1e-2,1e-3", out, "--seeds 2")).code == 0);
  const auto change = [&](const std::string& name, const std::function<void(nlohmann::json&)>& how) {
    auto json = nlohmann::json::parse(read_file(out + "/runs/" + name + "/run.json"));
    how(json);
    write_atomically(out + "/runs/" + name + "/run.json", json.dump());
  };
  const auto rows = [&](const Words& more, int code) {
    Words line{out, "--gather"};
    line.insert(line.end(), more.begin(), more.end());
    const Result r = sweep(line);
    CAPTURE(r.out);
    CHECK(r.code == code);
    std::istringstream csv(timeless(out + "/results.csv"));
    Words found;
    for (std::string text; std::getline(csv, text);) found.push_back(text);
    found.erase(found.begin());
    return found;
  };
  int at = 0;
  for (const char* name : {"lr=1e-2,s1", "lr=1e-2,s2", "lr=1e-3,s1", "lr=1e-3,s2"})
    change(name, [&](auto& json) {
      json["solved_at"]["step"] = 20 * ++at;
      json["valid_loss"] = at;
    });
  change("lr=1e-2,s2", [](auto& json) { json["solved_at"]["step"] = nullptr; });
  const Words solved{"--metric", "solved_at.step"};
  CHECK(rows(solved, 0) ==
        Words{"1e-3,70,14.142135623730951,60,2,0,0,60,\"lr=1e-3,s1\"", "1e-2,inf,,20,2,0,0,60,\"lr=1e-2,s1\""});
  CHECK(contains(read_file(out + "/results.md"), "| 1e-2 | 1 of 2 never | 20 | 2 | 60 |"));

  for (const char* seed : {"1", "2"}) {  // whichever seed is missing, the updates are those of the other one
    const std::string record = out + "/runs/lr=1e-3,s" + seed + "/run.json", text = read_file(record);
    fs::remove(record);
    CHECK(rows({}, 0)[1].substr(0, 6) == (*seed == '1' ? "1e-3,4" : "1e-3,3"));
    CHECK(contains(rows({}, 0)[1], ",1,0,1,60,"));
    write_atomically(record, text);
  }
  const std::string record = out + "/runs/lr=1e-2,s2/run.json", text = read_file(record);
  fs::remove(record);
  const Words incomplete = rows({}, 0);  // the lower mean is that of one seed
  CHECK(incomplete[0].starts_with("1e-3,3.5,"));
  CHECK(incomplete[1].starts_with("1e-2,1,"));
  write_atomically(record, text);

  write_atomically(out + "/runs/lr=1e-2,s2/worker.json", R"({"reached": 20, "problem": "diverged", "final": true})");
  change("lr=1e-2,s2", [](auto& json) { json["finished"] = false; });
  CHECK(rows({}, 1) ==
        Words{"1e-3,3.5,0.7071067811865476,3,2,0,0,60,\"lr=1e-3,s1\"", "1e-2,1,,1,1,1,0,60,\"lr=1e-2,s1\""});
}

TEST_CASE("sweep --hours: a run goes on if what is left of it fits; one run is one job's work") {
  const TempDir dir, here;
  const auto sweep = [&](const Words& line) { return run("sweep", line, here.path); };
  const std::string out = dir / "s";
  REQUIRE(sweep(small_sweep("lr=1e-2", out, "")).code == 0);
  write_atomically(out + "/costs.json", R"({"lr=1e-2": {"update": 1, "validation": 0}})");
  const auto fits = [&](const std::string& hours) {
    fs::remove(out + "/runs/lr=1e-2,s1/run.json");
    const Result r = sweep({out, "--jobs", "4", "--hours", hours});
    CAPTURE(r.err);
    CHECK(r.code == 0);
    return contains(r.err, "; 1 fit into " + hours + "\n");
  };
  CHECK(fits("0.001"));  // it has all 60 updates
  fs::remove_all(out + "/runs/lr=1e-2,s1");
  CHECK_FALSE(fits("0.01"));  // 36 seconds of 60
  const Result threads = sweep({out, "--jobs", "1", "--threads", "2", "--hours", "0.01"});
  CHECK_MESSAGE(contains(threads.err, "; 1 fit into 0.01\n"), threads.err);  // measured anew
  CHECK(nlohmann::json::parse(read_file(out + "/costs.json"))["lr=1e-2"]["threads"] == 2);
}

TEST_CASE("sweep --hours: runs of epochs, of a task with a test, and with a warm-up longer than what is timed") {
  const TempDir dir;
  const std::string paths = "-- --hidden 6 --examples 20 --batch 10 --valid-size 10 --test 10 ";
  for (const auto& [task, options] : std::initializer_list<std::pair<std::string, std::string>>{
           {"paths", paths + "--epochs 20"},
           {"paths", paths + "--epochs=20 --no-test"},
           {"paths", paths + "--steps 40"},
           {"copying", "-- --delay 4 --hidden 6 --batch 4 --valid-size 4 --steps 40 --warmup 20"}}) {
    CAPTURE(options);
    const std::string out = dir / "s";
    const Result r =
        run("sweep", words(task + " --grid lr=1e-2 --hours 1 --jobs 1 --out " + out + " " + options), dir.path);
    CHECK_MESSAGE(r.code == 0, r.err);
    CHECK_MESSAGE(contains(r.err, "; 1 fit into 1\n"), r.err);
    CHECK(nlohmann::json::parse(read_file(out + "/costs.json"))["lr=1e-2"]["update"] > 0);
    CHECK(nlohmann::json::parse(read_file(out + "/runs/lr=1e-2,s1/run.json"))["steps"] == 40);
    fs::remove_all(out);
  }
}
