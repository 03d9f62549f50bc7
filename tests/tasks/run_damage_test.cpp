// Run folders that are cut short or damaged: one line that names the file or option, a hint, and the exit code: 2 for
// what was typed, 1 for what was not.
#include <algorithm>
#include <filesystem>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/little_data.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A short run of this task in the folder.
void train(const std::string& task, const TempDir& dir, const std::string& out, const std::vector<std::string>& more) {
  const Result r =
      run(task, with({"--hidden", "4", "--steps", "2", "--quiet", "--no-report", "--threads", "1", "--out", out}, more),
          dir.path);
  REQUIRE_MESSAGE(r.code == 0, r.err);
}

const std::vector<std::string> short_copying{"--delay", "3", "--batch", "4", "--valid-size", "4"};

std::string written_table(const TempDir& dir) {
  std::string text = "t,x,y\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{},{}\n", i, i % 7, i % 3);
  write_atomically(dir / "d.csv", text);
  return dir / "d.csv";
}

/// The one line of a program that fails.
std::string line_of(const TempDir& dir, const std::string& program, const std::vector<std::string>& words, int code,
                    const Limits& limits = {}) {
  const Result r = run(program, words, dir.path, {}, limits);
  CAPTURE(r.err);
  CHECK(r.code == code);
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  CHECK(r.err.starts_with(program + ": "));
  CHECK(!contains(r.err, "json.exception"));
  return r.err;
}

}  // namespace

TEST_CASE("a run that was killed before its first checkpoint starts with --resume, whatever files it has by then") {
  const TempDir dir;
  write_data(dir / "data");
  const std::vector<std::string> table{"--data", written_table(dir), "--target", "y", "--window", "5"},
      data{"--data", dir / "data"};
  for (const auto& [task, words] :
       {std::pair{"table", table}, {"charlm", data}, {"babi", data}, {"music", data}, {"copying", short_copying}}) {
    CAPTURE(task);
    const std::string whole = dir / task + std::string("-whole"), cut = dir / task + std::string("-cut");
    train(task, dir, whole, words);
    train(task, dir, cut, words);
    for (const auto& entry : fs::directory_iterator(cut))
      if (entry.path().filename() != "config.toml" && entry.path().filename() != "lock") fs::remove_all(entry.path());
    const std::string rows = read_file(whole + "/metrics.csv");
    write_atomically(cut + "/metrics.csv", rows.substr(0, rows.find('\n') + 1));
    const Result r = run(task, {"--resume", cut, "--quiet", "--no-report"}, dir.path);
    CHECK_MESSAGE(r.code == 0, r.err);
    for (const char* file : {"table.json", "vocabulary.json", "data.json", "model.json"}) {
      CAPTURE(file);
      REQUIRE(fs::exists(whole + "/" + file) == fs::exists(cut + "/" + file));
      if (fs::exists(cut + "/" + file)) CHECK(read_file(whole + "/" + file) == read_file(cut + "/" + file));
    }
  }
  const std::string file = dir / "table-whole/table.json";
  fs::remove(file);
  CHECK(contains(line_of(dir, "table", {"--resume", dir / "table-whole", "--steps", "4"}, 1), "Hint: put it back"));
}

TEST_CASE("charlm: a resumed run must have the characters that it began with") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "we saw a wren ";
  write_atomically(dir / "text.txt", text);
  train("charlm", dir, dir / "run", {"--text", dir / "text.txt", "--batch", "2", "--unroll", "5"});
  const std::string before = read_file(dir / "run/vocabulary.json");
  std::replace(text.begin(), text.end(), 'w', 'x');  // which counts as the same symbol
  write_atomically(dir / "text.txt", text);
  const std::vector<std::string> again{"--resume", dir / "run", "--steps", "4", "--quiet"};
  CHECK(contains(line_of(dir, "charlm", again, 1),
                 "run: the data have changed since the run began: character 7 was \"w\" and is \"x\". Hint: start a"));
  CHECK(read_file(dir / "run/vocabulary.json") == before);
  write_atomically(dir / "run/vocabulary.json", "[]");
  const std::string damaged = line_of(dir, "charlm", again, 1);
  CHECK(contains(damaged, "vocabulary.json: is damaged"));
  CHECK(!contains(damaged, "--data"));
  fs::remove(dir / "run/vocabulary.json");
  CHECK(run("charlm", again, dir.path).code == 0);
}

TEST_CASE("--init-from: a damaged file is no bad usage, and the line has the option's name") {
  const TempDir dir;
  train("copying", dir, dir / "run", short_copying);
  write_atomically(dir / "run/best.safetensors", "no safetensors");
  const std::vector<std::string> words = with(short_copying, {"--dry-run", "--hidden", "4", "--init-from"});
  for (const char* from : {"run", "run/best.safetensors"})
    CHECK(contains(line_of(dir, "copying", with(words, {dir / from}), 1),
                   "copying: --init-from: [" + (dir / "run/best.safetensors") + "] "));
  CHECK(contains(line_of(dir, "copying", with(words, {dir / "none"}), 2), "copying: --init-from: ["));
}

TEST_CASE("a link that leads to itself and a name that is too long are told in words, wherever a run is expected") {
  const TempDir dir;
  fs::create_symlink("loop", dir / "loop");
  write_atomically(dir / "x.csv", "x\n1\n");
  for (const auto& [run, why] : {std::pair{dir / "loop", "Too many levels of symbolic links"},
                                 {dir / std::string(300, 'n'), "File name too long"}}) {
    CHECK(contains(line_of(dir, "copying", with(short_copying, {"--dry-run", "--init-from", run}), 2),
                   fmt::format("[{}] cannot be read: {}", run, why)));
    const std::string text = fmt::format("[{}/model.json] cannot be read: {}", run, why);
    CHECK(contains(line_of(dir, "predict", {run, "--input", dir / "x.csv"}, 1), text));
    CHECK(contains(line_of(dir, "apply", {"--run", run, "--describe"}, 1), text));
  }
}

TEST_CASE("--best accuracy of a task without one is bad usage") {
  const TempDir dir;
  CHECK(contains(
      line_of(dir, "table", {"--data", written_table(dir), "--target", "y", "--window", "5", "--best", "accuracy"}, 2),
      "table: --best: the task table has no accuracy. Hint: --best loss"));
}

TEST_CASE("a damaged file of options: 2 if it was typed, 1 if it is a run's own; explain speaks in its own name") {
  const TempDir dir;
  train("copying", dir, dir / "run", short_copying);
  const std::string config = dir / "run/config.toml", good = read_file(config);
  for (const std::string& bad : std::vector<std::string>{"hidden = = 4\n" + good, "hidden = \"x\"\n", "hiddne = 4\n"}) {
    write_atomically(config, bad);
    CHECK(contains(line_of(dir, "copying", {"--config", config, "--dry-run"}, 2), config + ":1: "));
    CHECK(contains(line_of(dir, "copying", {"--resume", dir / "run"}, 1), config + ":1: "));
    CHECK(contains(line_of(dir, "explain", {dir / "run"}, 1), config + ":1: "));
  }
  write_atomically(config, good);
  CHECK(contains(line_of(dir, "explain", {dir / "run", "--device", "nothing"}, 2), "nothing"));
  const Result other = run("adding", {"--resume", dir / "run"}, dir.path);
  CHECK(other.code == 2);
  CHECK(contains(other.err, "this is a run of copying, not of adding"));
}

TEST_CASE("JSON files that are damaged: the line and column, and what to do") {
  const TempDir dir;
  train("table", dir, dir / "run", {"--data", written_table(dir), "--target", "y", "--window", "5"});
  const auto spoil = [](const std::string& path) {
    std::string text = read_file(path);
    const std::size_t second = text.find('\n') + 1;
    write_atomically(path, text.substr(0, second) + "  ?" + text.substr(second));
  };
  for (const char* file : {"table.json", "model.json"}) {
    const std::string path = dir / "run/" + std::string(file), good = read_file(path);
    spoil(path);
    const std::string line = line_of(dir, "to_onnx", {dir / "run", "--output", dir / "x.onnx"}, 1);
    CHECK(contains(line, file));
    CHECK_MESSAGE(contains(line, "JSON: line 2, column 3. Hint: "), line);
    write_atomically(path, good);
  }
  const std::vector<std::string> options{"copying", "--steps=2", "--hidden=4", "--out", dir / "sweep", "--dry-run"};
  fs::create_directories(dir / "sweep");
  for (const auto& [text, what] : {std::pair{"{\n ?", "is damaged: no JSON at line 2, column 2. Hint: "},
                                   {"{\n \"task\": 1e400}", "is damaged: no JSON at line 2, column 14. Hint: "},
                                   {"{\"task\": 3}", "is damaged: type must be string, but is number. Hint: "},
                                   {"{}", "is damaged: key 'task' not found. Hint: "}}) {
    write_atomically(dir / "sweep/sweep.json", text);
    const std::string line = line_of(dir, "sweep", {dir / "sweep"}, 1);
    CHECK_MESSAGE(contains(line, what), line);
  }
}

TEST_CASE("the words fit the numbers, and hints are of use") {
  const TempDir dir;
  const std::string data = written_table(dir);
  CHECK(contains(line_of(dir, "table", {"--data", data, "--target", "b"}, 2), "no column \"b\"; it has t, x, y"));
  CHECK(contains(line_of(dir, "table", {"--data", data, "--target", "Y", "--window", "70"}, 2), "Hint: y."));
  write_atomically(dir / "one.csv", "g,x,y\n1,1,1\n2,2,2\n3,3,3\n4,4,4\n");
  CHECK(
      contains(line_of(dir, "table", {"--data", dir / "one.csv", "--target", "y", "--group", "g", "--window", "2"}, 2),
               "has 1 row, got 2"));
  write_atomically(dir / "one.txt", "a");
  CHECK(contains(line_of(dir, "charlm", {"--text", dir / "one.txt"}, 1),
                 "1 character to train on is too few for 32 tracks"));
}

TEST_CASE("a run of table that goes on with fewer data, or with data that have moved") {
  const TempDir dir;
  const std::string data = written_table(dir), text = read_file(data), out = dir / "run";
  const Result r = run("table",
                       {"--data", data, "--target", "y", "--window", "5", "--hidden", "4", "--batch", "4", "--epochs",
                        "2", "--quiet", "--no-report", "--threads", "1", "--out", out},
                       dir.path);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(contains(line_of(dir, "table", {"--resume", out, "--epochs", "1"}, 2), "table: --epochs: the run in " + out));
  write_atomically(dir / "less.csv", text.substr(0, text.find("\n40,")) + "\n");
  const std::string less = line_of(dir, "table", {"--resume", out, "--data", dir / "less.csv"}, 1);
  CHECK(contains(less, " updates, and 2 epochs of these data are "));
  CHECK(contains(less, "Hint: --data PATH of the data that it began with\n"));
  fs::rename(data, dir / "moved.csv");
  const std::string gone = "[" + data + "] cannot be read: No such file or directory. Hint: --data PATH\n";
  CHECK(line_of(dir, "table", {"--resume", out}, 1) == "table: " + gone);
  CHECK(line_of(dir, "explain", {out}, 1) == "explain: " + gone);
  CHECK(run("table", {"--resume", out, "--data", dir / "moved.csv", "--quiet"}, dir.path).code == 0);
}

TEST_CASE("a run that Python made is resumed by no program") {
  const TempDir dir;
  fs::create_directory(dir / "run");
  write_atomically(dir / "run/config.toml", "every-step = true\n");
  write_atomically(dir / "run/model.json", "{\"task\": \"\"}");
  CHECK(contains(line_of(dir, "table", {"--resume", dir / "run"}, 2),
                 "this is a run of Python's reel.train, not of table"));
}

TEST_CASE("parameters that are a folder, rows that are none") {
  const TempDir dir;
  train("copying", dir, dir / "run", short_copying);
  const std::string best = dir / "run/best.safetensors", metrics = dir / "run/metrics.csv", rows = read_file(metrics);
  write_atomically(metrics, rows + "garbage\ntail");
  CHECK(contains(line_of(dir, "copying", {"--resume", dir / "run", "--steps", "4"}, 1), "is not a line of metrics"));
  write_atomically(metrics, "");
  CHECK(contains(line_of(dir, "compare", {dir / "run"}, 1), "there is nothing to draw: " + (dir / "run") + ": has no"));
  write_atomically(metrics, rows);
  fs::remove(best);
  fs::create_directory(best);
  const std::string line = line_of(dir, "apply", {"--run", dir / "run", "--describe"}, 1);
  CHECK(contains(line, "[" + best + "] "));
}

TEST_CASE("a limit of the stack that the libraries of kernels exceed is refused") {
  const TempDir dir;
  CHECK(contains(line_of(dir, "copying", short_copying, 1, {{RLIMIT_STACK, 128 << 10}}),
                 "copying: [stack] 256 KiB or more are needed, the limit is 128 KiB. Hint: ulimit -s 8192"));
}
