// What programs do when the world is against them: output that cannot be delivered, full disks, folders in use or half
// there, a terminal that hangs up.
#include <sys/resource.h>
#include <algorithm>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tasks/io/output.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

std::vector<std::string> small(const std::string& out, const std::string& steps = "20") {
  return {"--delay", "5",   "--hidden",      "8",  "--batch",   "2", "--valid-size", "4",
          "--steps", steps, "--valid-every", "10", "--threads", "1", "--out",        out};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A line of bash, in which "$@" is a program of ours with its arguments.
Result shell(const std::string& line, const std::string& program, const std::vector<std::string>& arguments,
             const TempDir& dir) {
  std::string command = "set -- " + shell_path(REEL_BIN_DIR "/" + program);
  for (const std::string& a : arguments) command += " " + (a.starts_with('-') ? a : shell_path(a));
  std::ignore =
      std::system(("bash -c " + shell_path("{ " + command + "; " + line + "; } >" + shell_path(dir / "out") + " 2>" +
                                           shell_path(dir / "err") + "; echo $? >" + shell_path(dir / "code")))
                      .c_str());
  return {std::stoi(read_file(dir / "code")), read_file(dir / "out"), read_file(dir / "err")};
}

bool finished(const std::string& run) {
  return fs::exists(run + "/run.json") && nlohmann::json::parse(read_file(run + "/run.json"))["finished"] == true;
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void wait_for(const std::string& file) {
  for (int i = 0; i < 3000 && !fs::exists(file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(fs::exists(file));
}

/// Whether a name of the folder speaks of what is only half there.
bool leftovers(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".tmp" || entry.path().filename() == "lock") return true;
  return false;
}

}  // namespace

TEST_CASE("messages that cannot be written end no run") {
  const TempDir dir;
  int n = 0;
  for (const std::string line : {"\"$@\" 2>/dev/full", "\"$@\" 2>&-", "\"$@\" 2> >(true)", "\"$@\" <&- 2>&-"}) {
    CAPTURE(line);
    const std::string run = dir / std::to_string(n++);
    const Result r = shell(line, "copying", small(run), dir);
    CHECK(r.code == 0);
    CHECK(contains(r.out, "valid_loss "));
    CHECK(finished(run));
    CHECK(read_file(run + "/metrics.csv").starts_with("step,examples,"));  // no message got into a file
  }
}

TEST_CASE("results that cannot be delivered: the run is saved, one line says so, exit 1") {
  const TempDir dir;
  int n = 0;
  for (const std::string line : {"\"$@\" >/dev/full", "\"$@\" >&-", "\"$@\" <&- >&-"}) {
    CAPTURE(line);
    const std::string run = dir / std::to_string(n++);
    const Result r = shell(line, "copying", with(small(run), {"--quiet"}), dir);
    CHECK(r.code == 1);
    CHECK(r.err.starts_with("copying: [stdout] cannot be written: "));
    CHECK(lines(r.err) == 1);
    CHECK(finished(run));
  }
  for (const std::string program :
       {"copying", "charlm", "apply", "compare", "mechanism", "reproduce", "sweep", "bench_cells"}) {
    if (!fs::exists(REEL_BIN_DIR "/" + program)) continue;
    const Result r = shell("\"$@\" >/dev/full", program, {"--help"}, dir);
    CHECK_MESSAGE(r.code == 1, program);
    CHECK(r.err == program + ": [stdout] cannot be written: No space left on device\n");
  }
  CHECK(shell("\"$@\" >/dev/full", "copying", {"--hiden", "3"}, dir).code == 2);
  // The first loop ends when the reader has gone. Who reads the first lines of a help text or a list knows that.
  const std::string gone = "{ trap '' PIPE; while echo 2>/dev/null; do :; done; \"$@\"; echo $? >&2; } | true";
  CHECK(shell(gone, "copying", {"--help"}, dir).err == "1\n");
  CHECK(shell(gone, "copying", {"--list-cells"}, dir).err == "1\n");
  CHECK(shell(gone, "reproduce", {"--list"}, dir).err == "1\n");
  CHECK(shell(gone, "copying", with(small(dir / "gone"), {"--quiet"}), dir).err ==
        "copying: [stdout] cannot be written: Broken pipe\n1\n");
}

TEST_CASE("a terminal that hangs up: saved as after SIGTERM; with nohup the run goes on") {
  const TempDir dir;
  Child child("copying", small(dir / "cut", "100000"), dir.path);
  wait_for(dir / "cut/checkpoint.safetensors");
  child.send(SIGHUP);
  const Result stopped = child.wait();
  CHECK(stopped.code == 130);
  CHECK(contains(stopped.err, "--resume " + dir / "cut"));
  CHECK_FALSE(leftovers(dir / "cut"));
  const Result nohup = shell("nohup \"$@\" & until [ -e " + shell_path(dir / "on/checkpoint.safetensors") +
                                 " ]; do sleep 0.01; done; kill -HUP $!; wait $!",
                             "copying", small(dir / "on", "5000"), dir);
  CHECK(nohup.code == 0);
  CHECK(finished(dir / "on"));
}

TEST_CASE("names that mean something to a shell, to gnuplot or to an option are names of files") {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path);
  const std::vector<std::string> names{"|touch PWNED;", "$(touch PWNED)",   "`touch PWNED`", "~",
                                       "it's ''two''",  "a\nb;touch PWNED", "\"q\" \\n %s",  "-x",
                                       "<b>&",          "{/=50 x}_y^z"};
  for (const std::string& name : names) {
    CAPTURE(name);
    const Result run_there = run("copying", with(small(name), {"--out=" + name, "--picture", "states"}), dir.path);
    CHECK(run_there.code == 0);
    CHECK(fs::exists(fs::path(name) / "checkpoint.safetensors"));
    const Result compared =
        run("compare", {"./" + name, "--title", name, "--names", name, "--out=" + name + ".svg"}, dir.path);
    const Result drawn = run("mechanism",
                             {"--symbols", "2", "--lengths", "2", "--draws", "2", "--delay", "5", "--planes", "4",
                              "--out=" + name + ".tsv", "--picture=" + name + "-map.svg"},
                             dir.path);
    CHECK(drawn.code == 0);
    CHECK(fs::exists(name + ".tsv"));
    if (contains(compared.err, "gnuplot is not installed")) continue;
    CHECK(compared.code == 0);
    for (const std::string& file : {name + "/curve.svg", name + "/states-h.svg", name + ".svg", name + "-map.svg"})
      CHECK_MESSAGE(contains(read_file(file), "</svg>"), file);
    CHECK(fs::exists(name + ".png"));
  }
  write_atomically("evil.toml", "out = \"|touch PWNED;from file\"\n");
  CHECK(run("copying", {"--config", "evil.toml", "--steps", "2", "--delay", "5", "--hidden", "8"}, dir.path).code == 0);
  CHECK(fs::exists("|touch PWNED;from file/config.toml"));
  write_atomically("zero.toml", "out = \"a\\u0000b\"\n");
  CHECK(run("copying", {"--config", "zero.toml", "--steps", "2"}, dir.path).code == 2);
  CHECK_FALSE(fs::exists("a"));
  for (const auto& entry : fs::recursive_directory_iterator("."))
    CHECK_MESSAGE(entry.path().filename() != "PWNED", entry.path().string());
  fs::current_path(before);
}

TEST_CASE("a run that was killed before its first update: the same command starts anew, --resume starts it") {
  const TempDir dir;
  const std::string cut = dir / "cut", whole = dir / "whole";
  REQUIRE(run("copying", small(whole), dir.path).code == 0);
  const auto checkpoint = [](const std::string& of) { return read_file(of + "/checkpoint.safetensors"); };
  const auto killed_early = [&] {
    fs::remove_all(cut);
    REQUIRE(run("copying", small(cut), dir.path).code == 0);
    for (const char* file :
         {"checkpoint.safetensors", "best.safetensors", "run.json", "curve.svg", "curve.png", "curve.pdf"})
      fs::remove(cut + "/" + file);
    write_atomically(cut + "/metrics.csv", read_file(cut + "/metrics.csv").substr(0, 62));
    write_atomically(cut + "/lock", "copying (process 1 on nowhere) since 2000-01-01 00:00:00 +0000\n");
  };
  killed_early();
  const Result again = run("copying", small(cut), dir.path);
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK(contains(again.err, cut + ": held a run that ended before its first update; it starts anew\n"));
  killed_early();
  const Result resumed = run("copying", {"--resume", cut}, dir.path);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.err, cut + ": there is no checkpoint yet; the run starts from its config.toml\n"));
  CHECK(finished(cut));
  CHECK(checkpoint(cut).size() == checkpoint(whole).size());

  const Result diverged = run("copying", with(small(dir / "wild"), {"--lr", "1e38"}), dir.path);
  CHECK(diverged.code == 1);
  CHECK(run("copying", small(dir / "wild"), dir.path).code == 0);

  fs::remove(cut + "/config.toml");
  const std::string before = checkpoint(cut);
  const Result headless = run("copying", small(cut), dir.path);
  CHECK(headless.code == 1);
  CHECK(contains(headless.err, "holds the checkpoint of a run, but no config.toml. Hint: another folder for --out"));
  const Result torn = run("copying", {"--resume", cut}, dir.path);
  CHECK(torn.code == 2);
  CHECK(torn.err == "copying: --resume " + cut + ": the folder has no config.toml, so there is no run to resume\n");
  CHECK(checkpoint(cut) == before);

  for (const bool empty : {false, true}) {  // rows that are lost do not stand in the way
    empty ? write_atomically(whole + "/metrics.csv", "") : (void)fs::remove(whole + "/metrics.csv");
    const Result more = run("copying", {"--resume", whole, "--steps", empty ? "60" : "40"}, dir.path);
    CHECK(more.code == 0);
    CHECK(contains(more.err, "metrics.csv: is gone or empty; the rows of earlier steps are missing"));
    CHECK(lines(read_file(whole + "/metrics.csv")) == 3);
  }
}

TEST_CASE("--resume says what damage takes from a run: its best model, its last row") {
  const TempDir dir;
  const std::string out = dir / "run", best = out + "/best.safetensors", metrics = out + "/metrics.csv";
  REQUIRE(run("copying", small(out), dir.path).code == 0);
  const auto resume = [&](const std::string& steps) {
    const Result r = run("copying", {"--resume", out, "--steps", steps, "--quiet"}, dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  const auto record = nlohmann::json::parse(read_file(out + "/run.json"))["best"];
  fs::remove(best);
  CHECK(resume("30") ==
        fmt::format("copying: {}: is gone; the best model counts from here (it was update {}, {:.4g})\n", best,
                    record["step"].get<int>(), record["valid_loss"].get<double>()));
  fs::remove(best);
  fs::remove(out + "/run.json");
  CHECK(resume("40") == "copying: " + best + ": is gone; the best model counts from here\n");
  // An older version had no such file. Its run.json says nothing of a best model; a run that was killed has none.
  auto old = nlohmann::json::parse(read_file(out + "/run.json"));
  old.erase("best");
  write_atomically(out + "/run.json", old.dump());
  fs::remove(best);
  CHECK(resume("50").empty());

  const std::string rows = read_file(metrics);
  const auto cut = [&](std::size_t bytes) { write_atomically(metrics, rows.substr(0, rows.size() - bytes)); };
  cut(4);
  CHECK(resume("60") == "copying: " + metrics + ":6: is not a whole row; it is skipped\n");
  CHECK(lines(read_file(metrics)) == 6);
  // what a crash leaves behind is made again
  write_atomically(metrics, read_file(metrics) + "70,14");
  CHECK(resume("70").empty());
  CHECK(lines(read_file(metrics)) == 7);
}

TEST_CASE("one program a run folder: the second says who has it, and changes nothing; a dead one has nothing") {
  const TempDir dir, other;
  const std::string out = dir / "run";
  Child first("copying", small(out, "1000000"), dir.path);
  wait_for(out + "/checkpoint.safetensors");
  const auto stop = [&] {
    first.send(SIGSTOP);
    return read_file(out + "/metrics.csv") + read_file(out + "/checkpoint.safetensors");
  };
  const std::string before = stop();
  for (const auto& arguments : {small(out), {"--resume", out}}) {
    const Result second = run("copying", arguments, other.path);
    CHECK(second.code == 1);
    CHECK(second.err.starts_with(fmt::format("copying: [{}] is in use by copying (process ", out)));
    CHECK(contains(second.err, " since 20"));
    CHECK(lines(second.err) == 1);
  }
  CHECK(read_file(out + "/metrics.csv") + read_file(out + "/checkpoint.safetensors") == before);
  first.send(SIGKILL);
  CHECK(first.wait().code == 128 + SIGKILL);
  CHECK(fs::exists(out + "/lock"));
  write_atomically(out + "/.report.html.tmp", "what kill -9 leaves in the middle of a file");
  const std::string checkpoint = read_file(out + "/checkpoint.safetensors");
  std::uint64_t header = 0;  // its size
  std::memcpy(&header, checkpoint.data(), sizeof header);
  const std::string done = nlohmann::json::parse(checkpoint.substr(sizeof header, header))["__metadata__"]["step"];
  const std::string more = std::to_string(std::stoi(done) + 1);  // none may be done yet
  CHECK(run("copying", {"--resume", out, "--steps", more}, dir.path).code == 0);
  CHECK_FALSE(leftovers(out));

  // both at once
  std::vector<std::unique_ptr<TempDir>> places;
  std::vector<Child> all;
  for (int i = 0; i < 4; ++i) {
    places.push_back(std::make_unique<TempDir>());
    all.emplace_back("copying", small(dir / "new", "3000"), places.back()->path);
  }
  int won = 0;
  for (Child& child : all) {
    const Result r = child.wait();
    won += r.code == 0;
    CHECK((r.code == 0 || contains(r.err, "is in use by ") || contains(r.err, "holds a run already")));
  }
  CHECK(won == 1);
  CHECK(finished(dir / "new"));
  CHECK(lines(read_file(dir / "new/metrics.csv")) == 301);
}

TEST_CASE("a full disk: file and reason are named, what was there stays whole, exit 1") {
  const TempDir dir;
  const std::string out = dir / "run";
  // a limit of file sizes, in KiB, is a disk that is full from there on
  const Result cut = shell("ulimit -f 2; \"$@\"", "copying", small(out, "60"), dir);
  CHECK(cut.code == 1);
  CHECK(contains(cut.err, "checkpoint.safetensors] cannot be written: File too large"));
  CHECK_FALSE(fs::exists(out + "/checkpoint.safetensors"));
  CHECK_FALSE(leftovers(out));
  CHECK(run("copying", small(out, "60"), dir.path).code == 0);

  if (fs::exists(out + "/curve.svg")) {
    fs::remove(out + "/curve.svg");
    fs::create_symlink("/dev/full", out + "/curve.svg");
    const Result unseen = run("copying", {"--resume", out, "--steps", "80", "--picture", "states"}, dir.path);
    CHECK(unseen.code == 1);
    CHECK(contains(unseen.err, "run/curve.svg] cannot be written: No space left on device"));
    CHECK(contains(unseen.out, "valid_loss "));
    CHECK(contains(unseen.out, "picture: " + out + "/states-h.svg"));
    CHECK_FALSE(contains(unseen.out, "curve.svg"));
    CHECK(finished(out));
    fs::remove(out + "/states-h.svg");
    fs::create_directory(out + "/states-h.svg");
    const Result folder = run("copying", {"--resume", out, "--picture", "states,changes"}, dir.path);
    CHECK(folder.code == 1);
    CHECK(contains(folder.err, "states-h.svg] cannot be written: Is a directory"));
    CHECK(fs::exists(out + "/changes-h.svg"));
    const Result compared = run("compare", {out, "--out", dir / "nowhere/x.svg"}, dir.path);
    CHECK(compared.code == 1);
    CHECK(contains(compared.err, "nowhere/x.svg] cannot be written: No such file or directory"));
  }
}

TEST_CASE("what is written to goes where it leads: a device stays one") {
  const TempDir dir;
  fs::create_symlink("/dev/null", dir / "null");
  CHECK(run("apply", {"--cell", "rnn", "--hidden", "4", "--init-only", "--weights-out", dir / "null"}, dir.path).code ==
        0);
  CHECK(fs::is_symlink(dir / "null"));
  CHECK(fs::is_character_file("/dev/null"));
  const Result full =
      run("apply", {"--cell", "rnn", "--hidden", "4", "--init-only", "--weights-out", "/dev/full"}, dir.path);
  CHECK(full.code == 1);
  CHECK(full.err == "apply: [/dev/full] cannot be written: No space left on device\n");
  const Result table =
      run("mechanism",
          {"--symbols", "2", "--lengths", "2", "--draws", "2", "--delay", "5", "--planes", "4", "--out", "/dev/stdout"},
          dir.path);
  CHECK(table.code == 0);
  CHECK(contains(table.out, "K \\ S"));
  CHECK(contains(table.out, "K\tS\tplanes"));
}
