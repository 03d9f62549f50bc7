// predict: the answers of finished runs to new rows, from files and streams; states between calls; what is refused.
#include <sys/stat.h>
#include <algorithm>
#include <chrono>

#include <cstring>
#include <sstream>
#include <thread>

#include "tasks/training/predictor.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Trains a few steps; returns the run's folder.
std::string train(const TempDir& dir, const std::string& task, std::vector<std::string> options) {
  const std::string out = dir / task + std::to_string(options.size());
  options.insert(options.end(), {"--steps", "3", "--hidden", "8", "--threads", "1", "--quiet", "--out", out});
  const Result r = run(task, options, dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string table(int rows) {
  std::string text = "value,marked\n";
  for (int r = 0; r < rows; ++r) text += fmt::format("{},{}\n", (r * 37 % 100) / 100.0, r % 7 == 2 ? 1 : 0);
  return text;
}

}  // namespace

TEST_CASE("predict: a row of answers for each row, the same to the last bit from a file and from a stream") {
  const TempDir dir;
  write_atomically(dir / "x.csv", table(40));
  for (const std::string cell : {"lstm", "srnn", "goru"}) {
    CAPTURE(cell);
    const std::string out = train(
        dir, "adding", {"--cell", cell, "--length", "20", "--layers", "2", "--lr", cell == "goru" ? "1e-4" : "1e-3"});
    const Result file = run("predict", {out, "--input", dir / "x.csv", "--at", "each"}, dir.path);
    const Result stream = run("predict", {out, "--stream", "--input", dir / "x.csv"}, dir.path);
    CAPTURE(file.err);
    CHECK(file.code == 0);
    CHECK(stream.code == 0);
    CHECK(file.out == stream.out);
    CHECK(contains(stream.err, "40 rows, "));
    CHECK(contains(stream.err, "(p99) each"));
    const std::vector<std::string> lines = lines_of(file.out);
    REQUIRE(lines.size() == 41);
    CHECK(lines[0] == "line,y0");
    CHECK(lines[1].starts_with("2,"));
    const Result last = run("predict", {out, "--input", dir / "x.csv", "--quiet"}, dir.path);
    CHECK(last.out == "line,y0\n" + lines[40] + "\n");
    CHECK(last.err.empty());

    // What the library answers for the whole sequence at once.
    const Predictor predictor(out);
    std::vector<double> x;
    for (int r = 0; r < 40; ++r) x.insert(x.end(), {(r * 37 % 100) / 100.0, r % 7 == 2 ? 1.0 : 0.0});
    const double expected = predictor(Tensor::from<double>(x, {40, 1, 2})).values<float>().at(0);
    CHECK(std::stod(lines[40].substr(3)) == doctest::Approx(expected).epsilon(1e-5));
    std::filesystem::remove_all(out);
  }
}

TEST_CASE("predict: each row of a pipe is answered before the next one comes") {
  const TempDir dir;
  const std::string out = train(dir, "adding", {"--cell", "gru", "--length", "20"}), pipe = dir / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  Child child("predict", {out, "--stream", "--input", pipe}, dir.path);
  const FileHandle end(pipe, O_WRONLY, "written");
  const auto write = [&](const std::string& text) {
    REQUIRE(::write(end.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  write("value,marked\n");
  for (std::size_t row = 1; row <= 3; ++row) {
    if (row == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // silence is no end
    write("0.5,1\n");
    for (int wait = 0; wait < 1000 && lines_of(read_file(dir / "stdout")).size() < row + 1; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE(lines_of(read_file(dir / "stdout")).size() == row + 1);
  }
  write("0.5,oh\n");
  const Result r = child.wait();
  CHECK(r.code == 1);
  CHECK(contains(r.err, pipe + ":5: column \"marked\": a number is expected, got \"oh\""));
}

TEST_CASE("predict: a stream that is interrupted keeps its states; one that nobody reads ends") {
  const TempDir dir;
  const std::string out = train(dir, "adding", {"--cell", "gru", "--length", "20"}), pipe = dir / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  {
    Child child("predict", {out, "--stream", "--input", pipe, "--states-out", dir / "states.safetensors"}, dir.path);
    const FileHandle end(pipe, O_WRONLY, "written");
    const std::string text = "value,marked\n0.5,1\n";
    REQUIRE(write(end.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    for (int wait = 0; wait < 1000 && lines_of(read_file(dir / "stdout")).size() < 2; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    child.send(SIGINT);
    const Result r = child.wait();
    CHECK(r.code == 130);
    CHECK(contains(r.err, "1 rows, "));
  }
  const Result next =
      run("predict", {out, "--stream", "--input", dir / "none.csv", "--states", dir / "states.safetensors"}, dir.path);
  CHECK(contains(next.err, "none.csv"));  // the states were taken before
  // endless rows into a pipe whose reader has gone
  const std::string command =
      fmt::format("(echo value,marked; yes 0.5,1) | {}/predict {} --stream 2>{} | head -2 >/dev/null", REEL_BIN_DIR,
                  out, dir / "err");
  CHECK(std::system(command.c_str()) == 0);
  CHECK(contains(read_file(dir / "err"), "predict: [stdout] cannot be written"));
}

TEST_CASE("predict: states are kept between calls") {
  const TempDir dir;
  const std::string out = train(dir, "adding", {"--cell", "lstm", "--length", "20"}), all = table(30);
  const std::size_t half = all.find('\n', all.size() / 2) + 1, header = all.find('\n') + 1;
  write_atomically(dir / "all.csv", all);
  write_atomically(dir / "first.csv", all.substr(0, half));
  write_atomically(dir / "second.csv", all.substr(0, header) + all.substr(half));
  const std::string states = dir / "states.safetensors";
  const auto answers = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> options{out, "--stream", "--input", dir / file, "--quiet"};
    options.insert(options.end(), more.begin(), more.end());
    const Result r = run("predict", options, dir.path);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    std::vector<std::string> values;
    for (const std::string& line : lines_of(r.out)) values.push_back(line.substr(line.find(',') + 1));
    return values;
  };
  const auto whole = answers("all.csv", {});
  const auto first = answers("first.csv", {"--states-out", states}),
             second = answers("second.csv", {"--states", states});
  CHECK(std::equal(first.begin(), first.end(), whole.begin()));
  CHECK(std::equal(second.begin() + 1, second.end(), whole.begin() + std::ssize(first)));
  CHECK(first.size() + second.size() == whole.size() + 1);
  CHECK(answers("second.csv", {})[1] != second[1]);
  save_safetensors(states, {.tensors = {{"state.0", Tensor::zeros({1, 5})}}, .metadata = {}});
  const Result r = run("predict", {out, "--stream", "--input", dir / "all.csv", "--states", states}, dir.path);
  CHECK(r.code == 1);
  CHECK(contains(r.err, "the states of this model are f32 (1, 8), f32 (1, 8); got f32 (1, 5)"));
}

TEST_CASE("predict: symbols, and answers as arrays") {
  const TempDir dir;
  const std::string out = train(dir, "copying", {"--cell", "gru", "--delay", "5"});
  write_atomically(dir / "x.csv", "symbol\n3\n1\n0\n0\n9\n");
  const Result csv = run("predict", {out, "--input", dir / "x.csv"}, dir.path);
  CAPTURE(csv.err);
  CHECK(csv.code == 0);
  const std::vector<std::string> lines = lines_of(csv.out);
  REQUIRE(lines.size() == 6);  // the task has outputs at each step
  CHECK(lines[0].starts_with("line,y0,y1,"));
  REQUIRE(run("predict", {out, "--input", dir / "x.csv", "--output", dir / "y.npy"}, dir.path).code == 0);
  REQUIRE(run("predict", {out, "--input", dir / "x.csv", "--output", dir / "y.safetensors"}, dir.path).code == 0);
  const TensorFile file = load_safetensors(dir / "y.safetensors");
  const auto y = file.at("y").values<double>();
  CHECK(file.at("y").dim(0) == 5);
  CHECK(file.at("row").values<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2, 3, 4});
  CHECK(std::stod(lines[1].substr(2)) == y[0]);
  const std::string npy = read_file(dir / "y.npy");
  REQUIRE(npy.size() > y.size() * 8);
  CHECK(npy.substr(0, 8) == std::string("\x93NUMPY\x01\0", 8));
  CHECK((npy.size() - y.size() * 8) % 64 == 0);
  CHECK(std::memcmp(npy.data() + npy.size() - y.size() * 8, y.data(), y.size() * 8) == 0);
  CHECK(contains(npy, fmt::format("'shape': (5, {}), }}", file.at("y").dim(1))));

  // a model that reads all at once takes the same symbols
  const std::string both = train(dir, "copying", {"--cell", "gru", "--delay", "5", "--bidirectional"});
  CHECK(run("predict", {both, "--input", dir / "x.csv"}, dir.path).code == 0);
  for (const std::string symbol : {"70", "0.5", "-1", "10", "1e30", "4294967296"}) {
    write_atomically(dir / "far.csv", "symbol\n3\n" + symbol + "\n");
    for (const std::string& folder : {out, both}) {
      const Result r = run("predict", {folder, "--input", dir / "far.csv"}, dir.path);
      CAPTURE(r.err);
      CHECK(r.code == 1);
      CHECK(contains(r.err, dir / "far.csv:3: a symbol from 0 to 9 is expected, got "));
    }
  }
}

TEST_CASE("predict: what cannot be answered is one clear line") {
  const TempDir dir;
  const std::string out = train(dir, "adding", {"--cell", "gru", "--length", "20"}),
                    both = train(dir, "adding", {"--cell", "gru", "--length", "20", "--bidirectional"});
  write_atomically(dir / "x.csv", table(5));
  write_atomically(dir / "ragged.csv", "value,marked\n1,2\n3\n");
  write_atomically(dir / "wide.csv", "a,b,c\n1,2,3\n");
  write_atomically(dir / "empty.csv", "");
  std::filesystem::create_directory(dir / "none");
  std::filesystem::copy(out, dir / "old");
  std::filesystem::remove(dir / "old/model.json");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string text;
  };
  const std::vector<Case> cases{
      {{}, 2, "the folder of one run is expected, got 0"},
      {{out}, 2, "--input: a file is expected"},
      {{out, "--input", dir / "x.csv", "--output", dir / "y.txt"}, 2, "a name that ends with .csv"},
      {{out, "--stream", "--output", dir / "y.csv"}, 2, "--output: --stream writes to stdout"},
      {{both, "--stream"}, 2, "--stream: this model reads whole sequences"},
      {{both, "--input", dir / "x.csv", "--states-out", dir / "s"}, 2, "--states-out: this model keeps no states"},
      {{dir / "none", "--input", dir / "x.csv"}, 1, "is not the folder of a run"},
      {{dir / "nowhere", "--input", dir / "x.csv"}, 1, "does not exist"},
      {{dir / "old", "--input", dir / "x.csv"}, 1, "has no model.json, as an older Reel made the run"},
      {{out, "--input", dir / "nothing.csv"}, 1, "nothing.csv"},
      {{out, "--input", dir / "ragged.csv"}, 1, "ragged.csv:3: 2 fields are expected, as in the header, got 1"},
      {{out, "--input", dir / "ragged.csv", "--stream"}, 1, "ragged.csv:3: 2 fields are expected, as in the header"},
      {{out, "--input", dir / "wide.csv"}, 1, "has 3 columns (a, b, c), the model reads 2"},
      {{out, "--input", dir / "empty.csv"}, 1, "empty.csv"},
  };
  for (const Case& c : cases) {
    const Result r = run("predict", c.arguments, dir.path);
    CAPTURE(c.text);
    CAPTURE(r.err);
    CHECK(r.code == c.code);
    CHECK(contains(r.err, c.text));
    CHECK(lines_of(r.err).back().starts_with("predict: "));
  }
  const Result whole = run("predict", {both, "--input", dir / "x.csv"}, dir.path);
  CHECK(whole.code == 0);
  CHECK(lines_of(whole.out).size() == 2);
}

namespace {

/// Rows of three sequences in turn: two inputs, a value and a class.
std::string groups(int rows) {
  std::string text = "who,a,b,sum,kind\n";
  for (int r = 0; r < rows; ++r) {
    const double a = (r * 37 % 101) / 50.0, b = (r * 53 % 97) / 30.0;
    text += fmt::format("s{},{},{},{},{}\n", r % 3, a, b, 100 * (a + b), a + b > 2.5 ? "much" : "little");
  }
  return text;
}

/// Fields of a line of CSV without quotes.
std::vector<std::string> fields_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  return fields;
}

}  // namespace

TEST_CASE("predict: sequences whose rows come in turn each have states of their own") {
  const TempDir dir;
  write_atomically(dir / "x.csv", groups(90));
  const std::string out = train(dir, "table",
                                {"--data", dir / "x.csv", "--group", "who", "--target", "sum", "--inputs", "a,b",
                                 "--at", "each", "--cell", "gru"});
  const Result stream = run("predict", {out, "--stream", "--input", dir / "x.csv"}, dir.path);
  CAPTURE(stream.err);
  REQUIRE(stream.code == 0);
  CHECK(stream.out == run("predict", {out, "--input", dir / "x.csv"}, dir.path).out);
  const std::vector<std::string> lines = lines_of(stream.out);
  CHECK(lines[0] == "line,who,sum");
  REQUIRE(lines.size() == 91);
  // one of them alone
  std::string alone = "who,a,b\n";
  for (const std::string& line : lines_of(groups(90))) {
    const auto f = fields_of(line);
    if (f[0] == "s1") alone += fmt::format("{},{},{}\n", f[0], f[1], f[2]);
  }
  write_atomically(dir / "alone.csv", alone);
  const auto own = lines_of(run("predict", {out, "--input", dir / "alone.csv"}, dir.path).out);
  REQUIRE(own.size() == 31);
  for (std::size_t k = 1; k < own.size(); ++k) CHECK(fields_of(own[k])[2] == fields_of(lines[3 * k - 1])[2]);
  // answers are in the units of the file: near its mean, which is far from 0, after three updates
  CHECK(std::stod(fields_of(lines[90])[2]) > 50);
  CHECK(contains(run("predict", {out, "--input", dir / "x.csv"}, dir.path).err, "rmse of sum "));
  CHECK(
      contains(run("predict", {out, "--stream", "--states-out", dir / "s"}, dir.path).err, "those of the column who"));
  // --test: the scores of these answers
  double squares = 0, sizes = 0;
  const auto rows = lines_of(groups(90));
  for (std::size_t k = 1; k <= 90; ++k) {
    const double off = std::stod(fields_of(lines[k])[2]) - std::stod(fields_of(rows[k])[3]);
    squares += off * off, sizes += std::abs(off);
  }
  const Result scores = run("predict", {out, "--test", dir / "x.csv"}, dir.path);
  CHECK(scores.out ==
        fmt::format("rmse of sum {:.4g}, mae {:.4g} over 90 answers\n", std::sqrt(squares / 90), sizes / 90));
  write_atomically(dir / "bare.csv", "who,a,b\ns0,1,2\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"--test", dir / "bare.csv"}, "sum"},
      {{"--test", dir / "x.csv", "--stream"}, "--stream: --test reads its own file"},
      {{"--test", dir / "x.csv", "--output", "y.csv"}, "--output: --test"},
      {{"--test", dir / "x.csv", "--input", dir / "x.csv"}, "--input: --test"}};
  for (const auto& [arguments, text] : refused) {
    std::vector<std::string> all{out};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Result r = run("predict", all, dir.path);
    CHECK((r.code != 0 && r.out.empty()));
    CHECK_MESSAGE(contains(r.err, text), r.err);
  }
}

TEST_CASE("predict: classes whose names need quotes; rows without a target have no part in the scores") {
  const TempDir dir;
  std::string rows = "a,kind\n";
  for (int r = 0; r < 60; ++r)
    rows += fmt::format("{},\"{}\"\n", r % 7, r % 7 < 3 ? "so \"\"called\"\"" : "this, or that");
  write_atomically(dir / "x.csv", rows);
  const std::string out = train(dir, "table",
                                {"--data", dir / "x.csv", "--target", "kind", "--at", "each", "--window", "6", "--cell",
                                 "gru", "--missing", "zero"});
  const Result answers = run("predict", {out, "--input", dir / "x.csv", "--quiet"}, dir.path);
  CAPTURE(answers.out);
  REQUIRE(answers.code == 0);
  const std::vector<std::string> lines = lines_of(answers.out);
  CHECK(lines.at(0) == "line,kind,\"p(so \"\"called\"\")\",\"p(this, or that)\"");
  for (std::size_t i = 1; i < lines.size(); ++i)
    CHECK((contains(lines[i], ",\"so \"\"called\"\"\",") || contains(lines[i], ",\"this, or that\",")));
  const auto scores = [&](const std::string& text) {
    write_atomically(dir / "test.csv", text);
    return run("predict", {out, "--test", dir / "test.csv", "--quiet"}, dir.path).out;
  };
  const std::string all = scores(rows);
  CHECK(contains(all, " over 60 answers"));
  const std::string accuracy = all.substr(0, all.find(" over"));
  CHECK(scores(rows + "1,\n2,\n") == accuracy + " over 60 answers\n");

  // classes that the model has never seen, at the end, where they change no other answer
  write_atomically(dir / "test.csv", rows + "1,new\n2,other\n3,new\n");
  const Result unknown = run("predict", {out, "--test", dir / "test.csv", "--quiet"}, dir.path);
  CHECK(unknown.code == 0);
  CHECK(unknown.err == "predict: " + dir / "test.csv" +
                           ": classes that the model does not know: \"new\" (2 rows), \"other\" (1 row); they count as "
                           "wrong, and the cross entropy is that of the others\n");
  const std::string entropy = accuracy.substr(accuracy.find(", cross entropy "));
  CHECK_MESSAGE(contains(unknown.out, entropy + " over 63 answers\n"), unknown.out);
  const double right = std::stod(accuracy.substr(std::string("accuracy ").size()));
  CHECK(std::stod(unknown.out.substr(std::string("accuracy ").size())) ==
        doctest::Approx(right * 60 / 63).epsilon(1e-3));
  CHECK(contains(scores("a,kind\n1,new\n"), "accuracy 0, cross entropy - over 1 answers"));
}

TEST_CASE("predict: a model of windows reads each window afresh") {
  const TempDir dir;
  write_atomically(dir / "x.csv", groups(60));
  const std::string out =
      train(dir, "table",
            {"--data", dir / "x.csv", "--target", "kind", "--inputs", "a,b", "--window", "7", "--cell", "lstm"});
  const Result file = run("predict", {out, "--input", dir / "x.csv"}, dir.path);
  CAPTURE(file.err);
  REQUIRE(file.code == 0);
  const auto lines = lines_of(file.out),
             stream = lines_of(run("predict", {out, "--stream", "--input", dir / "x.csv"}, dir.path).out);
  CHECK(lines[0] == "line,kind,p(little),p(much)");
  REQUIRE(lines.size() == 60 - 6 + 1);
  REQUIRE(stream.size() == 61);
  CHECK(stream[6] == "7,,,");
  for (std::size_t k = 1; k < lines.size(); ++k) CHECK(lines[k] == stream[k + 6]);
  CHECK(contains(file.err, "accuracy "));
  const auto f = fields_of(lines[20]);
  CHECK(std::stod(f[2]) + std::stod(f[3]) == doctest::Approx(1));
  CHECK(f[1] == (std::stod(f[2]) > std::stod(f[3]) ? "little" : "much"));
  // the seven rows before an answer are all that it depends on
  const auto all = lines_of(groups(60));
  std::string seven = all[0] + "\n";
  for (std::size_t row = 30; row < 37; ++row) seven += all[row] + "\n";
  write_atomically(dir / "seven.csv", seven);
  const auto one = lines_of(run("predict", {out, "--input", dir / "seven.csv"}, dir.path).out);
  REQUIRE(one.size() == 2);
  CHECK(fields_of(one[1])[2] == fields_of(stream[36])[2]);
  const auto carried = lines_of(run("predict", {out, "--input", dir / "x.csv", "--carry"}, dir.path).out);
  REQUIRE(carried.size() == 61);
  CHECK(fields_of(carried[7])[2] == fields_of(lines[1])[2]);
  CHECK(fields_of(carried[8])[2] != fields_of(lines[2])[2]);
  CHECK(contains(run("predict", {out, "--stream", "--states-out", dir / "s"}, dir.path).err, "Hint: --carry"));

  write_atomically(dir / "less.csv", "a,c\n1,2\n");
  CHECK(contains(run("predict", {out, "--input", dir / "less.csv"}, dir.path).err, "\"b\""));
  write_atomically(dir / "gap.csv", "a,b\n1,2\n,2\n");
  CHECK(contains(run("predict", {out, "--input", dir / "gap.csv"}, dir.path).err,
                 "gap.csv:3: column \"a\": the value is missing"));
  write_atomically(out + "/table.json", "{}");
  CHECK(contains(run("predict", {out, "--input", dir / "x.csv"}, dir.path).err, "table.json"));
}
