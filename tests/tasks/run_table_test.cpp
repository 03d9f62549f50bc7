// table: batches of a table, and the program from a file to a tested model and table.json.
#define main table_main
#include "tasks/table.cpp"
#undef main

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::string written(const TempDir& dir, const std::string& text) {
  write_atomically(dir / "data.csv", text);
  return dir / "data.csv";
}

TableTask task_of(const std::string& path, const TableOptions& options) {
  return TableTask(options, {.data = path, .examples = {.batch = 4, .valid_size = 0}});
}

/// Sequences of 2, 3 and 4 rows in turn: row t of sequence i has x = i + t / 10 and y = 100 i + t.
std::string ragged(int sequences) {
  std::string text = "id,x,y,label\n";
  for (int i = 0; i < sequences; ++i)
    for (int t = 0; t < 2 + i % 3; ++t)
      text += fmt::format("{},{},{},{}\n", i, i + t / 10.0, 100 * i + t, i % 2 ? "odd" : "even");
  return text;
}

/// Two classes of waves, and the next value of the wave in the column "next".
std::string waves(int sequences, int rows) {
  std::string text = "wave,value,next,kind\n";
  for (int i = 0; i < sequences; ++i)
    for (int t = 0; t < rows; ++t) {
      const double rate = i % 2 ? 0.9 : 0.3, phase = i * 0.7;
      text += fmt::format("{},{:.5f},{:.5f},{}\n", i, std::sin(rate * t + phase),
                          5 + 2 * std::sin(rate * (t + 1) + phase), i % 2 ? "fast" : "slow");
    }
  return text;
}

nlohmann::json run_json(const std::string& folder) { return nlohmann::json::parse(read_file(folder + "/run.json")); }

}  // namespace

TEST_CASE("batches at the last step: padded to the longest, with lengths, values as they are in the file") {
  const TempDir dir;
  const TableTask task =
      task_of(written(dir, ragged(30)), {.inputs = "x", .target = "y", .group = "id", .standardize = false});
  const Parts parts = task.parts();
  CHECK((parts.train == 20 && parts.valid == 5 && parts.test == 5));
  CHECK((task.shape().inputs == 1 && task.shape().outputs == 1 && !task.shape().every_step));
  std::vector<int> seen(30, 0);
  for (std::uint64_t s = 0; s + 3 <= 30; s += 3) {
    const Batch batch = task.batch(1, {s, s + 1, s + 2});
    REQUIRE(batch.lengths.defined());
    CHECK(!batch.weight.defined());
    const auto lengths = batch.lengths.values<std::int32_t>();
    const auto x = batch.x.values<float>(), y = batch.y.values<float>();
    CHECK(batch.x.shape() == Shape{*std::max_element(lengths.begin(), lengths.end()), 3, 1});
    CHECK(batch.y.shape() == Shape{3, 1});
    for (std::size_t b = 0; b < 3; ++b) {
      const int id = static_cast<int>(y[b]) / 100;
      ++seen[static_cast<std::size_t>(id)];
      CHECK(lengths[b] == 2 + id % 3);
      CHECK(y[b] == static_cast<float>(100 * id + lengths[b] - 1));
      for (std::int64_t t = 0; t < batch.x.dim(0); ++t) {
        const double wanted = t < lengths[b] ? id + static_cast<double>(t) / 10 : 0;
        CHECK(x[static_cast<std::size_t>(t) * 3 + b] == doctest::Approx(wanted));
      }
    }
  }
  CHECK(std::count(seen.begin(), seen.end(), 1) == 30);
}

TEST_CASE("batches at each step: padding and missing targets have no weight, in loss, accuracy and scores") {
  const TempDir dir;
  const std::string path = written(dir, ragged(30));
  const TableTask values = task_of(path, {.inputs = "x", .target = "y", .group = "id", .at = "each"});
  const Batch batch = values.batch(1, {0, 1, 2});
  const std::int64_t T = batch.x.dim(0);
  CHECK((batch.y.shape() == Shape{T, 3, 1} && batch.weight.shape() == Shape{T, 3, 1}));
  const double entries = sum(batch.weight).item();
  CHECK(entries == sum(cast(batch.lengths, DType::f64)).item());
  // Outputs that are right, but wrong by 1 where there is padding, and by 0.5 at one entry.
  const double deviation = values.spec().targets[0].deviation;
  const Tensor right = batch.y + (1 - batch.weight);
  CHECK(values.loss(right, batch).item() == 0);
  std::vector<float> off(static_cast<std::size_t>(T * 3), 0);
  off[1] = 0.5;
  const Tensor outputs = right + Tensor::from<float>(off, {T, 3, 1});
  CHECK(values.loss(outputs, batch).item() == doctest::Approx(0.25 / entries));
  const std::vector<Score> scores = values.scores(outputs, batch);
  REQUIRE(scores.size() == 2);
  CHECK((scores[0].name == "rmse" && scores[1].name == "mae" && scores[0].count == entries));
  CHECK(scores[0].mean() == doctest::Approx(0.5 * deviation / std::sqrt(entries)));
  CHECK(scores[1].mean() == doctest::Approx(0.5 * deviation / entries));

  const TableTask classes = task_of(path, {.inputs = "x", .target = "label", .group = "id", .at = "each"});
  const Batch labels = classes.batch(1, {0, 1, 2});
  CHECK((labels.y.dtype() == DType::i32 && labels.y.shape() == Shape{labels.x.dim(0), 3}));
  std::vector<float> logits;
  const auto y = labels.y.values<std::int32_t>();
  const auto weight = labels.weight.values<float>();
  for (std::size_t i = 0; i < y.size(); ++i)  // wrong in the padding and at the first entry
    for (int c = 0; c < 2; ++c) logits.push_back((c == y[i]) == (weight[i] > 0 && i > 0) ? 9.f : 0.f);
  const double n = sum(labels.weight).item();
  CHECK(classes.accuracy(Tensor::from<float>(logits, {labels.x.dim(0), 3, 2}), labels) == doctest::Approx((n - 1) / n));

  const TableTask missing = task_of(written(dir, "x,y,z\n1,2,\n2,,3\n3,4,5\n4,5,6\n5,,1\n1,1,1\n1,2,1\n1,1,2\n"),
                                    {.target = "y,z", .at = "each", .missing = "zero", .valid = 0.25, .test = 0.25});
  CHECK(missing.batch(1, {0}).weight.values<float>() == std::vector<float>{1, 0, 0, 1, 1, 1, 1, 1});
}

TEST_CASE("the program: classes of sequences, with table.json and the best parameters in the run folder") {
  const TempDir dir;
  const std::string csv = written(dir, waves(80, 20)), out = dir / "run";
  const std::vector<std::string> words{"--data",  csv,   "--inputs",    "value", "--target", "kind", "--group", "wave",
                                       "--cell",  "gru", "--hidden",    "16",    "--epochs", "30",   "--lr",    "1e-2",
                                       "--batch", "8",   "--optimizer", "adam",  "--out",    out};
  const Result result = run("table", words, dir.path);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(contains(result.err,
                 "data.csv: 2 classes of kind at the last step from 1 input (value); 56 training, 12 "
                 "validation and 12 test sequences of 20 rows"));
  const TableSpec spec = TableSpec::load(out + "/table.json");
  CHECK(spec.classes == std::vector<std::string>{"fast", "slow"});
  CHECK((spec.input_names() == std::vector<std::string>{"value"} && spec.group == "wave" && !spec.each));
  CHECK(run_json(out)["test"]["accuracy"].get<double>() > 0.9);
  CHECK(std::filesystem::exists(out + "/best.safetensors"));
}

TEST_CASE("the program: regression at each step, errors in the target's own units") {
  const TempDir dir;
  const std::string csv = written(dir, waves(40, 24)), out = dir / "run";
  const Result result =
      run("table", {"--data",  csv,    "--inputs", "value", "--target", "next", "--group",     "wave", "--at", "each",
                    "--cell",  "lstm", "--hidden", "24",    "--epochs", "40",   "--optimizer", "adam", "--lr", "1e-2",
                    "--batch", "8",    "--quiet",  "--out", out},
          dir.path);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const auto test = run_json(out)["test"];
  const double loss = test["loss"], rmse = test["rmse"], mae = test["mae"];
  CHECK(loss < 0.15);
  CHECK(rmse ==
        doctest::Approx(std::sqrt(loss) * TableSpec::load(out + "/table.json").targets[0].deviation).epsilon(1e-4));
  CHECK((mae < rmse && mae > 0));
}

TEST_CASE("the program: says what it does not check and does not read") {
  const TempDir dir;
  std::string text = "day,x,y,wind,sky\n";
  for (int r = 0; r < 60; ++r) text += fmt::format("{}. May,{},{},N,blue\n", r, r % 7, r % 5);
  const Result r = run("table",
                       {"--data", written(dir, text), "--target", "y", "--time", "day", "--at", "each", "--window", "5",
                        "--hidden", "4", "--steps", "1", "--out", dir / "run"},
                       dir.path);
  CAPTURE(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.err, " from 1 input (x), without wind, sky: text; "));
  CHECK(contains(r.err, " rows; the order of day is not checked: it has neither numbers nor dates of one form"));
}

TEST_CASE("the program: a resumed run goes on as one that was not stopped, and refuses other data") {
  const TempDir dir;
  const std::string csv = written(dir, waves(12, 100));
  const auto words = [&](const std::string& out, const std::string& steps) {
    return std::vector<std::string>{"--data", csv,        "--target", "value",   "--inputs", "value",   "--horizon",
                                    "3",      "--window", "10",       "--group", "wave",     "--split", "time",
                                    "--cell", "lstm",     "--hidden", "8",       "--steps",  steps,     "--valid-every",
                                    "5",      "--quiet",  "--out",    out};
  };
  REQUIRE(run("table", words(dir / "whole", "20"), dir.path).code == 0);
  REQUIRE(run("table", words(dir / "parts", "10"), dir.path).code == 0);
  REQUIRE(run("table", {"--resume", dir / "parts", "--steps", "20", "--quiet"}, dir.path).code == 0);
  CHECK(run_json(dir / "whole")["test"] == run_json(dir / "parts")["test"]);
  CHECK(read_file(dir / "whole/table.json") == read_file(dir / "parts/table.json"));
  const TableSpec spec = TableSpec::load(dir / "parts/table.json");
  CHECK((spec.horizon == 3 && spec.window == 10));

  std::filesystem::rename(csv, dir / "moved.csv");
  const auto resume = [&](const std::string& data, const std::string& steps) {
    return run("table", {"--resume", dir / "parts", "--data", data, "--steps", steps, "--quiet"}, dir.path);
  };
  CHECK(resume(csv, "25").code == 1);
  CHECK(resume(dir / "moved.csv", "25").code == 0);
  CHECK(run("table", {"--resume", dir / "parts", "--steps", "26", "--quiet"}, dir.path).code == 0);  // it is kept
  write_atomically(csv, waves(12, 101));
  const std::string config = read_file(dir / "parts/config.toml");
  CHECK(contains(resume(csv, "30").err, "the data have changed since the run began. Hint: start a new run."));
  CHECK(read_file(dir / "parts/config.toml") == config);  // a run that is refused stays as it is
  CHECK(resume(dir / "moved.csv", "30").code == 0);

  std::string of_same_size = waves(12, 100);
  of_same_size.back() = ' ';
  for (const std::string& text : {waves(12, 101), of_same_size}) {
    write_atomically(dir / "moved.csv", text);
    const Result other = run("table", {"--resume", dir / "parts", "--steps", "31"}, dir.path);
    CHECK(other.code == 1);
    CHECK(contains(other.err, "the data have changed since the run began. Hint: start a new run."));
  }
}

TEST_CASE("the program: one line and an exit code for what is wrong") {
  const TempDir dir;
  const auto fails = [&](const std::vector<std::string>& words, int code, const std::string& text) {
    const Result result = run("table", words, dir.path);
    CAPTURE(result.err);
    CHECK(result.code == code);
    CHECK(contains(result.err, text));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.out.empty());
  };
  fails({}, 2, "table: --data FILE is needed: .csv, .npy, .npz or .safetensors");
  fails({"--data", dir / "none.csv", "--target", "y"}, 1, "none.csv] cannot be read: No such file or directory");
  const std::string csv = written(dir, "time,temp\n1,20\n2,n/a\n3,21\n");
  fails({"--data", csv, "--target", "temp", "--at", "each"}, 1,
        "data.csv:3: column \"temp\": a number is expected, got \"n/a\"");
  fails({"--data", csv, "--target", "temb"}, 2, "there is no column \"temb\". Hint: temp.");
  fails({"--data", csv, "--target", "temp", "--valid-part", "2"}, 2, "--valid-part: ");
  fails({"--data", csv}, 2, "table: --target: the column to predict is expected; ");
}

TEST_CASE("the program: names that are no words of one line stay in their line") {
  const TempDir dir;
  std::string text = "x,\"a\nb\",\x1b[31mred\n";
  for (int r = 0; r < 60; ++r) text += fmt::format("{},{},{}\n", r % 7, r % 5, r % 3);
  const Result r = run("table",
                       {"--data", written(dir, text), "--target", "a\nb,\x1b[31mred", "--at", "each", "--window", "5",
                        "--hidden", "4", "--steps", "2", "--threads", "1", "--out", dir / "run"},
                       dir.path);
  CAPTURE(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "rmse of a\\nb "));
  CHECK(contains(r.out, "rmse of \\x1b[31mred "));
  const Result scores = run("predict", {dir / "run", "--test", dir / "data.csv"}, dir.path);
  CHECK(scores.code == 0);
  CHECK(std::count(scores.out.begin(), scores.out.end(), '\n') == 1);
  for (const std::string& said : {r.out, r.err, scores.out, scores.err}) CHECK_FALSE(contains(said, "\x1b"));
}

TEST_CASE("the program: ten thousands of columns are no matter of minutes") {
  const TempDir dir;
  std::string text = "y";
  for (int c = 1; c < 20000; ++c) text += fmt::format(",c{}", c);
  for (int r = 0; r < 12; ++r) {
    text += fmt::format("\n{}", r % 5);
    for (int c = 1; c < 20000; ++c) text += ",1";
  }
  const Result r = run("table",
                       {"--data", written(dir, text + "\n"), "--target", "y", "--at", "each", "--hidden", "2",
                        "--batch", "1", "--steps", "1", "--threads", "1", "--out", dir / "run"},
                       dir.path, {}, {{RLIMIT_CPU, 20}});
  CAPTURE(r.err);
  CHECK(r.code == 0);
  CHECK(run("predict", {dir / "run", "--input", dir / "data.csv"}, dir.path, {}, {{RLIMIT_CPU, 20}}).code == 0);
  CHECK(run("predict", {dir / "run", "--input", dir / "data.csv", "--stream"}, dir.path, {}, {{RLIMIT_CPU, 20}}).code ==
        0);
}

namespace {

/// Trains a few steps; returns the run's folder.
std::string train(const TempDir& dir, const std::string& task, std::vector<std::string> options) {
  options.insert(options.end(), {"--steps", "3", "--hidden", "8", "--threads", "1", "--quiet", "--out", dir / "run"});
  REQUIRE(run(task, options, dir.path).code == 0);
  return dir / "run";
}

}  // namespace

TEST_CASE("predict: the scores of a forecast compare an answer with the row that it is about") {
  const TempDir dir;
  std::vector<double> values;
  std::string rows = "v\n";
  for (int r = 0; r < 80; ++r) {
    values.push_back(r * 37 % 23);
    rows += fmt::format("{}\n", values.back());
  }
  write_atomically(dir / "x.csv", rows);
  const std::string out = train(
      dir, "table", {"--data", dir / "x.csv", "--target", "v", "--horizon", "2", "--window", "6", "--cell", "gru"});
  const Result answers = run("predict", {out, "--input", dir / "x.csv", "--quiet"}, dir.path);
  REQUIRE(answers.code == 0);
  double squares = 0;
  int count = 0;
  std::istringstream lines(answers.out);
  for (std::string line; std::getline(lines, line);) {
    if (line == "line,v") continue;
    const std::size_t row = std::stoul(line) - 2;  // line 2 is row 0
    if (row + 2 >= values.size()) continue;
    const double off = std::stod(line.substr(line.find(',') + 1)) - values[row + 2];
    squares += off * off;
    ++count;
  }
  CHECK(count == 73);
  const std::string scores = run("predict", {out, "--test", dir / "x.csv"}, dir.path).out;
  CHECK(contains(scores, fmt::format("rmse of v {:.4g}, mae ", std::sqrt(squares / count))));
  CHECK(contains(scores, "over 73 answers"));
}

#ifndef REEL_ADDRESS_SANITIZER  // it needs address space of its own
TEST_CASE("a small file with more rows than fit into memory is refused before they are made") {
  const TempDir dir;
  const std::string out = train(dir, "adding", {"--cell", "gru", "--length", "20"});
  constexpr std::size_t rows = std::size_t{1} << 23;
  const std::string header = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, 2), }}\n", rows);
  write_atomically(dir / "x.npy", std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header +
                                      std::string(rows * 2, '\1'));
  const Limits memory{{RLIMIT_AS, rlim_t{900} << 20}};
  const Result answers = run("predict", {out, "--input", dir / "x.npy", "--quiet"}, dir.path, {}, memory);
  CHECK(answers.code == 1);
  CHECK(contains(answers.err, "predict: [predict] answers to 8388608 rows need 1.34 GB, ulimit -v allows 944 MB"));
  const Limits less{{RLIMIT_AS, rlim_t{700} << 20}};
  const Result trained =
      run("table", {"--data", dir / "x.npy", "--target", "c0", "--at", "each", "--window", "5"}, dir.path, {}, less);
  CHECK(trained.code == 1);
  CHECK(contains(trained.err, "table: [table] sequences of 8388608 rows need 973 MB, ulimit -v allows 734 MB"));
}
#endif

TEST_CASE("an epoch is as many full batches as a pass needs, rounded up, and the help says so") {
  const TempDir dir;
  CHECK(contains(run("table", {"--help"}, dir.path).out, "an epoch is examples / batch updates"));
  std::string text = "id,x,y\n";
  for (int i = 0; i < 47; ++i) text += fmt::format("{},{},{}\n", i, i % 7, i % 5);  // 33 to train on
  const Result r = run("table",
                       {"--data", written(dir, text), "--target", "y", "--group", "id", "--batch", "32", "--epochs",
                        "10", "--hidden", "4", "--quiet", "--out", dir / "run"},
                       dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const auto metrics = read_file(dir / "run/metrics.csv");
  CHECK(contains(metrics, "\n20,640,"));
}

TEST_CASE("sequences that fill no window are counted") {
  const TempDir dir;
  std::string text = "id,x,y\n";
  for (int id = 0; id < 12; ++id)
    for (int t = 0; t < (id % 4 == 0 ? 4 : 10); ++t) text += fmt::format("{},{},{}\n", id, t, id + 0.5);
  const auto said = [&](const std::string& window, const std::string& at) {
    return run("table",
               {"--data", written(dir, text), "--target", "y", "--group", "id", "--window", window, "--at", at,
                "--hidden", "4", "--steps", "1", "--out", dir / window + at},
               dir.path)
        .err;
  };
  CHECK(contains(said("6", "last"), "of 6 rows; 3 sequences left out as too short\n"));
  CHECK_FALSE(contains(said("4", "last"), "left out"));
  CHECK_FALSE(contains(said("6", "each"), "left out"));  // states go on from window to window
}

TEST_CASE("--stride without windows has no effect, and a note says so") {
  const TempDir dir;
  std::string text = "v\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{}\n", i % 7);
  const auto note = [&](const std::string& window) {
    return run("table",
               {"--data", written(dir, text), "--target", "v", "--horizon", "1", "--at", "each", "--stride", "3",
                "--window", window, "--hidden", "4", "--dry-run"},
               dir.path)
        .err;
  };
  CHECK(note("0") == "note: --stride has no effect: --window is 0\n");
  CHECK(note("5").empty());
}

TEST_CASE("--help shows three commands, and explains every option of the task") {
  const TempDir dir;
  const Result help = run("table", {"--help"}, dir.path);
  CHECK(help.code == 0);
  for (const char* text : {"table --data motions.csv", "table --data plant.csv", "table --data weather.csv", "--inputs",
                           "--target", "--predict", "--at", "--group", "--time", "--window", "--stride", "--horizon",
                           "--split", "--valid-part", "--test-part", "--standardize", "--missing"})
    CHECK(contains(help.out, text));
}
