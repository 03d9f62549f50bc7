// Which rows are a sequence, which of them have answers, and which classes count: what table and predict say of a file,
// and predict of the same rows as a stream.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Trains a few steps on these rows; returns the run's folder.
std::string train(const TempDir& dir, const std::string& rows, std::vector<std::string> options) {
  write_atomically(dir / "train.csv", rows);
  options.insert(options.end(), {"--data", dir / "train.csv", "--cell", "gru", "--steps", "3", "--hidden", "8",
                                 "--threads", "1", "--quiet", "--out", dir / "run"});
  const Result r = run("table", options, dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  return dir / "run";
}

/// `count` sequences of so many rows x, y, whose groups are numbers of 19 digits and, beside them, small ones.
std::string sequences(int count, int rows) {
  std::string text = "id,g,x,y\n";
  for (int s = 0; s < count; ++s)
    for (int r = 0; r < rows; ++r)
      text += fmt::format("17600000000000000{:02},{},{},{}\n", s, s, (r * 37 + s) % 11, (r + s) % 5);
  return text;
}

}  // namespace

TEST_CASE("groups of 19 digits stay apart, and are written as they are read") {
  const TempDir dir;
  const std::string rows = sequences(12, 4), out = train(dir, rows, {"--group", "id", "--target", "y"});
  const Result file = run("predict", {out, "--input", dir / "train.csv"}, dir.path);
  CAPTURE(file.out);
  REQUIRE(file.code == 0);
  CHECK(std::count(file.out.begin(), file.out.end(), '\n') == 13);  // an answer for each of the 12
  CHECK(contains(file.out, "\n5,1760000000000000000,"));
  CHECK(contains(file.out, "\n49,1760000000000000011,"));
}

TEST_CASE("a file and a stream have the same sequences, and refuse the same rows") {
  const TempDir dir;
  const std::string out =
      train(dir, sequences(6, 5), {"--group", "g", "--time", "id", "--inputs", "x", "--target", "y", "--at", "each"});
  const auto both = [&](const std::string& rows) {
    write_atomically(dir / "new.csv", "g,id,x\n" + rows);
    const Result file = run("predict", {out, "--input", dir / "new.csv", "--quiet"}, dir.path),
                 stream = run("predict", {out, "--stream", "--input", dir / "new.csv", "--quiet"}, dir.path);
    CAPTURE(rows);
    CHECK(file.code == stream.code);
    CHECK(file.err == stream.err);
    if (file.code == 0) CHECK(file.out == stream.out);
    return file;
  };
  const std::string answers = both("1,1,3\n1.0,1,3\n01,1,3\n1,2.50,3\n").out;
  const auto value = [&](const std::string& key) {
    const std::size_t at = answers.find(key);
    REQUIRE(at != std::string::npos);
    return answers.substr(at + key.size(), answers.find('\n', at) - at - key.size());
  };
  CHECK(value("2,1,1,") == value("3,1.0,1,"));  // each the first of its sequence
  CHECK(value("2,1,1,") == value("4,01,1,"));
  CHECK(value("2,1,1,") != value("5,1,2.50,"));
  CHECK(contains(both("1,1,3\n,2,3\n").err, "new.csv:3: column \"g\": the group of the row is missing"));
  CHECK(contains(both("1,2,3\n2,1,3\n1,1,3\n").err,
                 "new.csv:4: column \"id\": rows in order of time are expected, got 1 after 2"));
  CHECK(contains(both("1,2,3\n1,,3\n").err, "new.csv:3: column \"id\": the time is missing"));
  CHECK(contains(both("1,2024-05-02,3\n1,2024-05-01,3\n").err,
                 "new.csv:3: column \"id\": rows in order of time are expected, got 2024-05-01 after 2024-05-02"));
  CHECK(contains(both("1,2024-05-02,3\n1,,3\n").err, "new.csv:3: column \"id\": the time is missing"));
  CHECK(both("1,2024-05-02 09:00,3\n2,2024-05-01 09:00,3\n1,2024-05-02 10:00,3\n").code == 0);
  CHECK(both("1,2 May,3\n1,1 May,3\n").code == 0);  // their order is not known
  CHECK(both("1,2024-05-02,3\n1,2024-05-01 12:00,3\n").code == 0);
}

TEST_CASE("classes that look like numbers are compared as they are written") {
  const TempDir dir;
  std::string rows = "x,k\n";
  for (int r = 0; r < 60; ++r) rows += fmt::format("{},{}\n", r % 3, r % 3 == 0 ? "001" : r % 3 == 1 ? "002" : "abc");
  const std::string out = train(dir, rows, {"--target", "k", "--at", "each", "--window", "6", "--predict", "class"});
  const auto scores = [&](const std::string& text) {
    write_atomically(dir / "test.csv", "x,k\n" + text);
    return run("predict", {out, "--test", dir / "test.csv", "--quiet"}, dir.path).out;
  };
  const std::string mixed = scores("0,001\n1,002\n0,\n0,001\n");
  CHECK(contains(mixed, "over 3 answers"));
  CHECK_FALSE(contains(mixed, "inf"));
  CHECK(contains(scores("0,1\n"), "accuracy 0, cross entropy - over 1 answers"));  // no class of the model

  std::string numbers = "x,k\n";
  for (int r = 0; r < 60; ++r) numbers += fmt::format("{},{}\n", r % 3, r % 3 == 0 ? "1.0" : "2.0");
  std::filesystem::remove_all(out);
  train(dir, numbers, {"--target", "k", "--at", "each", "--window", "6", "--predict", "class"});
  const std::string one = scores("0,1.0\n1,2\n2,02\n");
  CHECK(contains(one, "over 3 answers"));
  CHECK_FALSE(contains(one, "inf"));
}

TEST_CASE("sequences that are shorter than the window are counted, and an error if all are") {
  const TempDir dir;
  const std::string out =
      train(dir, sequences(10, 8), {"--group", "g", "--inputs", "x", "--target", "y", "--window", "5"});
  write_atomically(dir / "some.csv", "g,x\na,1\na,2\nb,1\nb,2\nb,3\nb,4\nb,5\n");
  const Result some = run("predict", {out, "--input", dir / "some.csv"}, dir.path);
  CHECK(some.code == 0);
  CHECK(contains(some.err, "1 of 2 sequences are shorter than the model's window of 5 rows and have no answer\n"));
  CHECK(run("predict", {out, "--input", dir / "some.csv", "--quiet"}, dir.path).err.empty());
  write_atomically(dir / "none.csv", "g,x\na,1\na,2\nb,1\n");
  for (const char* option : {"--input", "--test"}) {
    write_atomically(dir / "none.csv", "g,x,y\na,1,1\na,2,1\nb,1,1\n");
    const Result none = run("predict", {out, option, dir / "none.csv"}, dir.path);
    CHECK(none.code == 1);
    CHECK(none.out.empty());
    CHECK(contains(none.err, "none.csv: no sequence has the 5 rows of the model's window, so none has an answer"));
  }
  const Result carried = run("predict", {out, "--input", dir / "none.csv", "--carry", "--quiet"}, dir.path);
  CHECK(std::count(carried.out.begin(), carried.out.end(), '\n') == 4);  // after each row
  CHECK(contains(run("predict", {out, "--test", dir / "none.csv", "--carry"}, dir.path).out, "over 3 answers"));
}

TEST_CASE("--carry of a model without windows is noted") {
  const TempDir dir;
  const std::string out = train(dir, sequences(10, 8), {"--group", "g", "--inputs", "x", "--target", "y"});
  const Result r = run("predict", {out, "--input", dir / "train.csv", "--carry"}, dir.path);
  CHECK(r.code == 0);
  CHECK_MESSAGE(contains(r.err, "note: --carry has no effect: it is for models of table --window"), r.err);
  CHECK(run("predict", {out, "--input", dir / "train.csv", "--carry", "--quiet"}, dir.path).err.empty());
}

TEST_CASE("a model that reads whole sequences and answers at their ends has no answer at each row") {
  const TempDir dir;
  const std::string rows = sequences(10, 8);
  std::vector<std::string> options{"--group", "g", "--inputs", "x", "--target", "y", "--bidirectional"};
  const std::string out = train(dir, rows, options);
  const std::vector<std::string> each{out, "--input", dir / "train.csv", "--at", "each"};
  const Result refused = run("predict", each, dir.path);
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  CHECK(refused.err ==
        "predict: --at each: this model reads whole sequences: it has no states, or reads them from the end, too\n");
  CHECK(run("predict", {out, "--input", dir / "train.csv", "--at", "last"}, dir.path).code == 0);

  std::filesystem::remove_all(out);
  options.insert(options.end(), {"--at", "each"});  // this one has
  train(dir, rows, options);
  const Result answers = run("predict", each, dir.path);
  CHECK(std::count(answers.out.begin(), answers.out.end(), '\n') == 81);

  std::filesystem::remove_all(out);
  options.resize(options.size() - 2);
  options.insert(options.end(), {"--window", "5"});  // and so has one that reads windows, but it carries no states
  train(dir, rows, options);
  CHECK(run("predict", each, dir.path).code == 0);
  write_atomically(dir / "short.csv", "g,x\na,1\n");
  const Result none = run("predict", {out, "--input", dir / "short.csv"}, dir.path);
  CHECK(none.code == 1);
  CHECK_MESSAGE(none.err.ends_with("so none has an answer\n"), none.err);
}

TEST_CASE("the column of lines gives way to a group or a time of its name") {
  const TempDir dir;
  const auto header = [&](const std::string& group, const std::string& target) {
    std::string rows = group + ",x," + target + "\n";
    for (int r = 0; r < 60; ++r) rows += fmt::format("{},{},{}\n", r / 6, r % 7, r % 5);
    const std::string out = train(dir, rows, {"--group", group, "--target", target});
    const std::string answers = run("predict", {out, "--input", dir / "train.csv", "--quiet"}, dir.path).out;
    CHECK(run("predict", {out, "--input", dir / "train.csv", "--stream", "--quiet"}, dir.path)
              .out.starts_with(answers.substr(0, answers.find('\n') + 1)));
    std::filesystem::remove_all(out);
    return answers.substr(0, answers.find('\n'));
  };
  CHECK(header("g", "y") == "line,g,y");
  CHECK(header("line", "y") == "line_,line,y");
  CHECK(header("line_", "line") == "line__,line_,line");
}

TEST_CASE("a file without the column of groups, of times or of a target is told which one it lacks") {
  const TempDir dir;
  std::string rows = "who,day,x,kind\n";
  for (int r = 0; r < 60; ++r) rows += fmt::format("s{},{},{},{}\n", r / 6, r, r % 7, r % 2 ? "up" : "down");
  const std::string out = train(dir, rows, {"--group", "who", "--time", "day", "--inputs", "x", "--target", "kind"});
  const auto says = [&](const std::string& text, const std::vector<std::string>& option, const std::string& what) {
    write_atomically(dir / "new.csv", text);
    std::vector<std::string> words{out, "--quiet"};
    words.insert(words.end(), option.begin(), option.end());
    words.push_back(dir / "new.csv");
    const Result r = run("predict", words, dir.path);
    CHECK(r.code == 1);
    CHECK(r.err == "predict: " + dir / "new.csv" + ": there is no column " + what + "\n");
  };
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--input"}, {"--stream", "--input"}}) {
    says("day,x\n1,2\n", option, "\"who\", the group of a row; it has day, x");
    says("who,x\na,2\n", option, "\"day\", the time of a row; it has who, x");
  }
  says("who,day,x,id\na,1,2,3\n", {"--test"}, "\"kind\", a target of the model; it has who, day, x, id");
  CHECK(run("predict", {out, "--input", "-"}, dir.path).err ==
        "predict: --input -: a file is expected. Hint: --stream reads from stdin\n");
}

TEST_CASE("--test of a forecast at the end of whole sequences: the answer whose target is the last row") {
  const TempDir dir;
  const std::string rows = sequences(12, 6), head = rows.substr(0, rows.find('\n') + 1);
  for (const bool both : {false, true}) {  // a model that reads the whole sequence at once, too
    std::vector<std::string> options{"--group", "g", "--target", "y", "--inputs", "x", "--horizon", "2"};
    if (both) options.emplace_back("--bidirectional");
    const std::string out = train(dir, rows, options);
    const Result scores = run("predict", {out, "--test", dir / "train.csv", "--quiet"}, dir.path);
    CAPTURE(scores.err);
    REQUIRE(scores.code == 0);
    std::string shorter = head;  // the first four rows of each: their last answers are about the sixth
    std::istringstream in(rows.substr(head.size()));
    std::string line;
    for (int r = 0; std::getline(in, line); ++r)
      if (r % 6 < 4) shorter += line + "\n";
    write_atomically(dir / "short.csv", shorter);
    std::istringstream answers(run("predict", {out, "--input", dir / "short.csv", "--quiet"}, dir.path).out);
    std::getline(answers, line);
    double squares = 0;
    int s = 0;
    for (; std::getline(answers, line); ++s) {
      const double off = std::stod(line.substr(line.rfind(',') + 1)) - (5 + s) % 5;
      squares += off * off;
    }
    REQUIRE(s == 12);
    CHECK(contains(scores.out, fmt::format("rmse of y {:.4g}, mae ", std::sqrt(squares / 12))));
    CHECK(contains(scores.out, " over 12 answers"));
    CHECK_FALSE(contains(run("predict", {out, "--input", dir / "train.csv"}, dir.path).err, "rmse"));
    std::filesystem::remove_all(out);
  }
}

TEST_CASE("--test with several targets: each is compared where it is there") {
  const TempDir dir;
  const auto rows = [](bool y, bool z, bool some) {
    std::string text = "x,y,z\n";
    for (int r = 0; r < 40; ++r)
      text += fmt::format("{},{},{}\n", r % 7, y ? fmt::format("{}", r % 5) : "",
                          z && (!some || r % 4 == 0) ? fmt::format("{}", r % 3) : "");
    return text;
  };
  const std::string out =
      train(dir, rows(true, true, false), {"--target", "y,z", "--at", "each", "--window", "5", "--missing", "zero"});
  const auto scores = [&](const std::string& text) {
    write_atomically(dir / "test.csv", text);
    return run("predict", {out, "--test", dir / "test.csv", "--quiet"}, dir.path);
  };
  const std::string all = scores(rows(true, true, false)).out, of_y = all.substr(0, all.find(", rmse of z"));
  CHECK(contains(all, " over 40 answers\n"));
  CHECK(all.find(" over ") == all.rfind(" over "));
  const std::string some = scores(rows(true, true, true)).out;
  CHECK(some.starts_with(of_y + " over 40 answers, rmse of z "));
  CHECK(some.ends_with(" over 10 answers\n"));
  CHECK(scores(rows(true, false, false)).out == of_y + " over 40 answers\n");
  CHECK(scores(rows(false, true, true)).out == some.substr(some.find("rmse of z")));
  CHECK(contains(scores(rows(false, false, false)).err, "has no target for any answer of the model"));
  CHECK(contains(scores("x,y,z\n1,2,NA\n").err, "test.csv:2: column \"z\": a number is expected, got \"NA\""));
}
