// predict: what it keeps in files of states, which files it never replaces, and what their names say.
#include <algorithm>

#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Rows a, b and their sum; every third b is missing, but for the first ones.
std::string rows(int first, int last) {
  std::string text = "a,b,sum\n";
  for (int r = first; r < last; ++r)
    text += fmt::format("{},{},{}\n", r * 37 % 11, r % 3 == 2 ? "" : fmt::format("{}", r * 53 % 7), r % 5);
  return text;
}

struct Trained {
  Trained() {
    write_atomically(dir / "train.csv", rows(0, 60));
    const Result r =
        run("table",
            {"--data",    dir / "train.csv", "--target", "sum", "--inputs", "a,b", "--at",     "each", "--window",  "6",
             "--missing", "previous",        "--cell",   "gru", "--steps",  "3",   "--hidden", "8",    "--threads", "1",
             "--quiet",   "--out",           out},
            dir.path);
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
  }
  Result predict(std::vector<std::string> words) const {
    words.insert(words.begin(), {out, "--quiet"});
    return run("predict", words, dir.path);
  }
  /// The answers of a stream, without its header and the numbers of lines.
  std::vector<std::string> answers(const std::string& text, std::vector<std::string> more, int code = 0) const {
    write_atomically(dir / "new.csv", text);
    more.insert(more.end(), {"--stream", "--input", dir / "new.csv"});
    const Result r = predict(more);
    CAPTURE(r.err);
    CHECK(r.code == code);
    std::vector<std::string> values;
    for (std::size_t at = r.out.find('\n') + 1; at < r.out.size(); at = r.out.find('\n', at) + 1)
      values.push_back(r.out.substr(r.out.find(',', at), r.out.find('\n', at) - r.out.find(',', at)));
    return values;
  }
  TempDir dir;
  const std::string out = dir / "run", states = dir / "states.safetensors";
};

}  // namespace

TEST_CASE("the latest values of the inputs go on with the states, for rows where one is missing") {
  const Trained t;
  const auto whole = t.answers(rows(0, 20), {}), first = t.answers(rows(0, 11), {"--states-out", t.states});
  REQUIRE(whole.size() == 20);
  REQUIRE(first.size() == 11);  // the next row has no b
  const auto rest = t.answers(rows(11, 20), {"--states", t.states, "--states-out", t.states});
  CHECK(rest == std::vector<std::string>(whole.begin() + 11, whole.end()));
  TensorFile file = load_safetensors(t.states);
  CHECK(file.at("previous").values<double>() == std::vector<double>{19 * 37 % 11, 19 * 53 % 7});

  // the file of an older version goes on where no value is missing
  std::erase_if(file.tensors, [](const auto& named) { return named.first == "previous"; });
  save_safetensors(t.states, file);
  CHECK(t.answers(rows(21, 23), {"--states", t.states}).size() == 2);
  CHECK(t.answers(rows(20, 23), {"--states", t.states}, 1).empty());
  file.tensors.emplace_back("previous", Tensor::zeros({3}, DType::f64));
  save_safetensors(t.states, file);
  const Result other = t.predict({"--input", t.dir / "train.csv", "--states", t.states});
  CHECK(other.code == 1);
  CHECK_MESSAGE(contains(other.err, "previous of this model is f64 (2,); got f64 (3,)"), other.err);
}

TEST_CASE("a bad row ends a stream, whose states are those after the rows before it") {
  const Trained t;
  const auto whole = t.answers(rows(0, 20), {});
  for (const std::string bad : {"4,seven,1\n", "4,1\n", "inf,1,1\n"}) {
    std::filesystem::remove(t.states);
    CHECK(t.answers(rows(0, 8) + bad, {"--states-out", t.states}, 1).size() == 8);
    CHECK(t.answers(rows(8, 20), {"--states", t.states}) == std::vector<std::string>(whole.begin() + 8, whole.end()));
  }
  std::filesystem::remove(t.states);
  CHECK(t.answers("a,c\n1,2\n", {"--states-out", t.states}, 1).empty());  // no row was answered
  CHECK_FALSE(std::filesystem::exists(t.states));
}

TEST_CASE("an output is never a file that is read, nor one of a run") {
  const Trained t;
  write_atomically(t.dir / "d.csv", rows(0, 9));
  std::filesystem::create_symlink("d.csv", t.dir / "link.csv");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
    const Result r = t.predict(words);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, text), r.err);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  };
  const std::string input = t.dir / "d.csv", best = read_file(t.out + "/best.safetensors");
  for (const std::string name : {"d.csv", "link.csv", "run/../d.csv"})
    refused({"--input", input, "--output", t.dir / name}, "which would be lost. Hint: another name");
  CHECK(read_file(input) == rows(0, 9));
  refused({"--input", input, "--output", t.out + "/best.safetensors"}, "this is a file of the run in that folder");
  refused({"--input", input, "--states-out", t.out + "/model.json"}, "--states-out " + t.out + "/model.json: this is");
  refused({"--input", input, "--output", t.dir / "y.safetensors", "--states-out", t.dir / "y.safetensors"},
          "this is the file of --output");
  CHECK(read_file(t.out + "/best.safetensors") == best);
  for (const std::string option : {"--states", "--states-out", "--test"})
    refused({"--input", input, option, ""}, "predict: " + option + ": the name of the file is empty\n");
  for (int again = 0; again < 2; ++again)  // what the user has put into the folder is the user's
    CHECK(t.predict({"--input", input, "--output", t.out + "/answers.csv"}).code == 0);
}

TEST_CASE("no figure, page or file of states takes the place of a run's own") {
  const Trained t;
  const auto refused = [&](const std::string& program, const std::vector<std::string>& words) {
    const Result r = run(program, words, t.dir.path);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, "this is a file of the run in that folder"), r.err);
  };
  refused("compare", {t.out, "--out", t.out + "/curve.svg"});
  refused("report", {t.out, "--out", t.out + "/report.html"});
  CHECK(run("report", {t.out, "--out", t.out + "/ALL.HTML"}, t.dir.path).code == 0);
  write_atomically(t.dir / "d.csv", rows(0, 9));
  const std::vector<std::string> states{t.out,           "--quiet",      "--input",
                                        t.dir / "d.csv", "--states-out", t.out + "/states.safetensors"};
  for (int again = 0; again < 2; ++again) CHECK(run("predict", states, t.dir.path).code == 0);
  write_atomically(t.out + "/states-h.svg", "");  // now there is a picture with numbers of this name
  refused("predict", states);
}

TEST_CASE("a run of table without its table.json is refused, as its numbers would be taken as they are") {
  const Trained t;
  std::filesystem::remove(t.out + "/table.json");
  write_atomically(t.dir / "ab.csv", "a,b\n1,2\n");
  const Result r = t.predict({"--input", t.dir / "ab.csv"});
  CHECK(r.code == 1);
  CHECK(r.out.empty());
  CHECK_MESSAGE(contains(r.err, "table.json] is gone"), r.err);
}

TEST_CASE("an ending in capitals names the same format") {
  const Trained t;
  const std::string input = t.dir / "train.csv";
  for (const char* name : {"y.safetensors", "Y.SAFETENSORS", "y.npy", "Y.Npy"})
    REQUIRE(t.predict({"--input", input, "--output", t.dir / name}).code == 0);
  CHECK(read_file(t.dir / "Y.SAFETENSORS") == read_file(t.dir / "y.safetensors"));
  CHECK(read_file(t.dir / "Y.Npy") == read_file(t.dir / "y.npy"));
}

TEST_CASE("a file of states is of one sequence and of one model") {
  const TempDir dir;
  const std::string states = dir / "states.safetensors", x = dir / "x.safetensors";
  for (const std::string seed : {"1", "2"}) {
    const Result r = run("adding",
                         {"--length", "5", "--batch", "2", "--valid-size", "4", "--cell", "gru", "--hidden", "4",
                          "--seed", seed, "--steps", "2", "--threads", "1", "--quiet", "--out", dir / seed},
                         dir.path);
    REQUIRE_MESSAGE(r.code == 0, r.err);
  }
  const auto predict = [&](const std::string& seed, const std::vector<std::string>& more) {
    std::vector<std::string> words{dir / seed, "--quiet", "--input", x};
    words.insert(words.end(), more.begin(), more.end());
    return run("predict", words, dir.path);
  };
  save_safetensors(x, {{{"all", Tensor::zeros({1, 3, 2})}}, {}});
  CHECK(predict("1", {"--states-out", states}).code == 0);
  CHECK(predict("1", {"--states", states}).code == 0);
  const Result other = predict("2", {"--states", states});
  CHECK(other.code == 1);
  CHECK(other.out.empty());
  CHECK_MESSAGE(contains(other.err, states + "] [predictor] these states belong to a model whose "), other.err);

  save_safetensors(x, {{{"all", Tensor::zeros({2, 3, 2})}}, {}});
  for (const std::string option : {"--states", "--states-out"}) {
    const Result several = predict("1", {option, states});
    CHECK(several.code == 2);
    CHECK(several.out.empty());
    CHECK_MESSAGE(contains(several.err, option + ": a file has the states of one sequence, " + x + " has 2"),
                  several.err);
  }
}
