// What every task says of its model in model.json, in each layout: other programs can take its runs.
#include <filesystem>

#include "tasks/training/trained_model.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/little_data.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

struct Case {
  std::string task;
  std::vector<std::string> options;
  std::int64_t vocabulary, inputs, outputs;
};

std::vector<Case> cases(const TempDir& dir) {
  std::vector<Case> all{
      {"adding", {"--length", "6"}, 0, 2, 1},
      {"denoising", {"--delay", "12", "--layout", "clean"}, 10, 0, 9},
      {"denoising", {"--delay", "12", "--layout", "nru"}, 10, 0, 9},
      {"denoising", {"--delay", "12", "--layout", "nru", "--symbols", "3"}, 5, 0, 4},
      {"denoising", {"--delay", "12", "--layout", "goru"}, 0, 10, 10},
      {"charlm", {"--data", dir / "data"}, 50, 0, 50},
      {"music", {"--data", dir / "data", "--set", "nottingham"}, 0, 88, 88},
      {"mnist", {"--data", dir / "data", "--image", "crop8", "--split", "none", "--no-test"}, 0, 1, 10},
      {"speech", {"--folder", dir / "sound", "--batch", "1"}, 0, 129, 129},
      {"table", {"--data", dir / "t.csv", "--target", "c", "--window", "4", "--predict", "value"}, 0, 2, 1},
  };
  for (const char* layout : {"standard", "nnrnn", "exprnn", "janet", "tcn"})
    all.push_back({"copying", {"--delay", "4", "--layout", layout}, -1, 0, -1});
  return all;
}

}  // namespace

TEST_CASE("runs of every task and layout are loaded, described, exported") {
  const TempDir dir;
  write_data(dir / "data");
  for (const char* part : {"train", "valid", "test"}) write_sound(fmt::format("{}/sound/{}/a.wav", dir.path, part));
  std::string table = "a,b,c\n";
  for (int i = 0; i < 60; ++i) table += fmt::format("{},{},{}\n", i % 7, i % 5, i % 3);
  write_new(dir / "t.csv", table);
  int n = 0;
  for (const Case& c : cases(dir)) {
    CAPTURE(c.task);
    CAPTURE(c.options);
    const std::string out = fmt::format("{}/{}", dir.path, n++);
    std::vector<std::string> words{"--steps", "1", "--hidden", "4", "--quiet", "--out", out};
    words.insert(words.end(), c.options.begin(), c.options.end());
    const Result trained = run(c.task, words, dir.path);
    REQUIRE_MESSAGE(trained.code == 0, trained.err);

    const ModelShape shape = load_model_config(out + "/model.json").shape;
    if (c.vocabulary >= 0) CHECK(shape.vocabulary == c.vocabulary);
    CHECK(shape.inputs == c.inputs);
    if (c.outputs >= 0) CHECK(shape.outputs == c.outputs);
    CHECK(load_trained_model(out).model.count() > 0);
    const Result described = run("apply", {"--run", out, "--describe"}, dir.path);
    CHECK_MESSAGE(described.code == 0, described.err);
    if (!fs::exists(REEL_BIN_DIR "/to_onnx")) continue;
    const Result exported = run("to_onnx", {out, "--output", out + ".onnx"}, dir.path);
    CHECK_MESSAGE(exported.code == 0, exported.err);
    CHECK(fs::exists(out + ".onnx"));
  }
}

TEST_CASE("older runs of denoising have the number of symbols as inputs, too, and are read all the same") {
  const TempDir dir;
  REQUIRE(run("denoising", {"--steps", "1", "--batch", "2", "--hidden", "4", "--delay", "12", "--out", dir / "run"},
              dir.path)
              .code == 0);
  const std::string path = dir / "run/model.json", good = read_file(path);
  const auto rewritten = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(contains(text, from));
    write_atomically(path, text.replace(text.find(from), from.size(), to));
  };
  rewritten("\"inputs\": 0", "\"inputs\": 9");
  CHECK(load_model_config(path).shape.inputs == 0);
  CHECK(run("apply", {"--run", dir / "run", "--describe"}, dir.path).code == 0);
  const std::string rule = "one of vocabulary and inputs is 1 or more, and the other is 0; got 10 and ";
  for (const int inputs : {1, 8, 10}) {
    rewritten("\"inputs\": 0", fmt::format("\"inputs\": {}", inputs));
    CHECK(contains(error_of([&] { load_model_config(path); }), fmt::format("{}{}", rule, inputs)));
  }
  rewritten("\"task\": \"denoising\"", "\"task\": \"copying\"");
  std::string other = read_file(path);
  write_atomically(path, other.replace(other.find("\"inputs\": 0"), 11, "\"inputs\": 9"));
  CHECK(contains(error_of([&] { load_model_config(path); }), rule + "9"));
}
