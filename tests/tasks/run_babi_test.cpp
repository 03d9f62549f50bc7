// babi: the format and what is not of it, stories and questions as columns, the three networks, runs.
#define main babi_main
#include "tasks/babi.cpp"
#undef main

#include <nlohmann/json.hpp>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

const std::string story =
    "1 Mary went to the kitchen.\n2 Where is Mary? \tkitchen\t1\n3 John took apples.\n4 What is John carrying? "
    "\tapples,milk\t3 1\n1 Mary went home.\n2 Where is Mary? \thome\t1\n";

struct Data {
  Data() {
    std::filesystem::create_directories(dir / "babi/en-valid");
    for (const char* part : {"train", "valid", "test"}) write(part, story);
  }
  void write(const std::string& part, const std::string& text) const {
    write_atomically(fmt::format("{}/babi/en-valid/qa5_{}.txt", dir.path, part), text);
  }
  TempDir dir;
};

std::string text_of(const Babi& babi, const std::vector<std::int32_t>& words) {
  std::string out;
  for (const std::int32_t w : words) out += (out.empty() ? "" : " ") + babi.words[static_cast<std::size_t>(w)];
  return out;
}

BabiTask task_of(const Data& data) {
  BabiOptions o;
  o.task = 5, o.size = "1k";
  return BabiTask(o, {.data = data.dir.path, .examples = {}});
}

}  // namespace

TEST_CASE("babi: statements before the question, without earlier questions; a new story at number 1") {
  const Data data;
  const Babi babi = read_babi(data.dir.path, "en-valid", 5, false);
  REQUIRE(babi.parts[0].size() == 3);
  CHECK(text_of(babi, babi.parts[0][0].story) == "mary went to the kitchen");
  CHECK(text_of(babi, babi.parts[0][0].words) == "where is mary");
  CHECK(text_of(babi, babi.parts[0][1].story) == "mary went to the kitchen john took apples");
  CHECK(text_of(babi, babi.parts[2][2].story) == "mary went home");
  CHECK(babi.answers == std::vector<std::string>{"kitchen", "apples,milk", "home"});
  CHECK(babi.parts[1][1].answer == 1);
  const Babi with = read_babi(data.dir.path, "en-valid", 5, true);
  CHECK(text_of(with, with.parts[0][1].story) == "mary went to the kitchen . john took apples .");
  CHECK(text_of(with, with.parts[0][1].words) == "what is john carrying ?");
}

TEST_CASE("babi: lines that are not of the format are named") {
  const Data data;
  const auto error = [&](const std::string& text) {
    data.write("valid", text);
    return error_of([&] { task_of(data); });
  };
  const std::string name = "[babi] en-valid/qa5_valid.txt: ";
  CHECK(contains(error("Mary went.\n"), name + "line 1: does not start with a number"));
  CHECK(contains(error(story + "\n1 Mary went.\n"), name + "line 7: does not start with a number"));
  CHECK(contains(error("1 A b.\n3 C?\td\t1\n"), name + "line 2: is number 3 after 1"));
  CHECK(contains(error("1 A b.\n2 C?\t\t1\n"), name + "line 2: has no answer"));
  CHECK(contains(error("1 C?\td\t1\n"), name + "line 1: has no question, or no story before it"));
  CHECK(contains(error("1 A b.\n2 C d.\n"), name + "has no questions"));
  CHECK(contains(error(""), name + "has no questions"));
  std::filesystem::remove(data.dir / "babi/en-valid/qa5_test.txt");
  data.write("valid", story);
  CHECK(contains(error_of([&] { task_of(data); }), "[babi] en-valid/qa5_test.txt: not found in"));
}

TEST_CASE("babi: stories and questions as columns with the places of their ends") {
  const Data data;
  const BabiTask task = task_of(data);
  CHECK(task.parts().train == 3);
  CHECK(task.baseline() == doctest::Approx(std::log(3)));
  const Batch batch = task.batch(1, {1, 2, 8});
  CHECK(batch.x.shape() == Shape{8, 3});
  CHECK(batch.more[0].shape() == Shape{4, 3});
  CHECK(batch.more[1].values<std::int32_t>() == std::vector<std::int32_t>{7 * 3, 2 * 3 + 1, 2 * 3 + 2});
  CHECK(batch.more[2].values<std::int32_t>() == std::vector<std::int32_t>{3 * 3, 2 * 3 + 1, 2 * 3 + 2});
  CHECK(batch.y.values<std::int32_t>() == std::vector<std::int32_t>{1, 2, 2});
  const auto x = batch.x.values<std::int32_t>();
  CHECK(x[2 * 3 + 1] != 0);
  CHECK(x[3 * 3 + 1] == 0);
}

TEST_CASE(
    "babi: what stands behind a story's end changes nothing; both readings of the paper; story and question matter") {
  const Data data;
  const BabiTask task = task_of(data);
  for (const bool over_time : {false, true}) {
    for (const std::string input : {"embedding", "one-hot"}) {
      CAPTURE(over_time);
      CAPTURE(input);
      ModelOptions o;
      o.cell = "gru", o.hidden = 6, o.input = input;
      const ThreeNetworks model(task.shape(), o, over_time, Init(4, DType::f64));
      const Tensor all = model.forward(task.batch(1, {0, 1, 2}), {}, nullptr);
      CHECK(all.shape() == Shape{3, 3});
      for (std::uint64_t s = 0; s < 3; ++s) {
        const Tensor alone = model.forward(task.batch(1, {s}), {}, nullptr);
        CHECK(difference(alone, slice(all, 0, static_cast<std::int64_t>(s), static_cast<std::int64_t>(s) + 1)) < 1e-13);
      }
      Tensors wrt;
      for (const Parameter& p : model.trained()) wrt.push_back(p.value);
      Tape tape;
      const Batch batch = task.batch(1, {0, 1, 2});
      const Tensors gradients = grad({task.loss(model.forward(batch, {}, nullptr), batch)}, wrt);
      for (std::size_t i = 0; i < wrt.size(); ++i) {
        CAPTURE(model.trained()[i].name);
        const bool recurrent = contains(model.trained()[i].name, "answer.W");  // from a zero state in the single step
        if (over_time || !recurrent) CHECK(sum(abs(gradients[i])).item() > 0);
      }
    }
  }
  ModelOptions o;
  o.head_init = "eunn";
  const ThreeNetworks eunn(task.shape(), o, false, Init(1));
  CHECK(eunn.parameters().back().name == "head.c");
  for (const float c : eunn.parameters().back().value.values<float>()) CHECK(c == 0.01f);
  o.layers = 2;
  const auto refused = [&] { return error_of([&] { ThreeNetworks(task.shape(), o, false, Init(1)); }); };
  CHECK(refused() == "layers: the three networks have one layer each, got 2. Hint: layers = 1");
  o.layers = 1, o.dropout = 0.5;
  CHECK(contains(refused(), "dropout: the three networks have one layer each, and dropout is between layers, got 0.5"));
  o.dropout = 0, o.bidirectional = true;
  CHECK(refused() == "bidirectional: the three networks read forward only. Hint: bidirectional = false");
  o.bidirectional = false, o.stack = {{"gru", 4}, {"lstm", 4}};
  CHECK(
      contains(refused(), "layers: the three networks have one layer each, got 2. Hint: one --cell and one --hidden"));
}

TEST_CASE("babi: --valid moves the last questions of the training set to the validation set, or back") {
  const Data data;
  const auto split = [&](std::int64_t valid) {
    BabiOptions o;
    o.task = 5, o.size = "1k", o.valid = valid;
    return BabiTask(o, {.data = data.dir.path, .examples = {}}).parts();
  };
  CHECK(split(0).train == 3);
  CHECK(split(4).train == 2);
  CHECK(split(4).valid == 4);
  CHECK(split(1).train == 5);
  CHECK(split(1).valid == 1);
  CHECK(split(1).test == 3);
  CHECK(contains(error_of([&] { split(6); }), "valid: fewer than the 6 questions of training and validation expected"));
}

TEST_CASE("babi: --init-from notes words and answers that are others, which parameters do not know") {
  const Data data;
  const std::string first = data.dir / "first";
  const auto go = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--data",   data.dir.path, "--task",  "5", "--size",    "1k",
                                   "--hidden", "4",           "--steps", "2", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Result r = run("babi", words, data.dir.path);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    return r.err;
  };
  go({"--quiet", "--no-report", "--batch", "2", "--out", first});
  const std::vector<std::string> again{"--dry-run", "--init-from", first};
  CHECK(go(again).empty());
  std::string other = "1 Sandra went home.\n2 Where is Sandra? \thome\t1\n" + story;  // as many words and answers
  for (std::size_t at; (at = other.find("Mary")) != other.npos;) other.replace(at, 4, "Sandra");
  for (const char* part : {"train", "valid", "test"}) data.write(part, other);
  const std::string why = "; parameters go by place, not by word\n", from = "note: --init-from " + first + ": ";
  CHECK(go(again) ==
        from + "answer 1 was \"kitchen\" and is \"home\"" + why + from + "word 2 was \"mary\" and is \"sandra\"" + why);
  std::string renamed = story;  // each word has the number that another one had
  for (std::size_t at; (at = renamed.find("Mary")) != renamed.npos;) renamed.replace(at, 4, "Marz");
  for (const char* part : {"train", "valid", "test"}) data.write(part, renamed);
  const Result resumed = run("babi", {"--resume", first, "--steps", "4"}, data.dir.path);
  CHECK(resumed.code == 1);
  CHECK(contains(resumed.err, "the data have changed since the run began: word 2 was \"mary\" and is \"marz\""));
}

TEST_CASE("babi: learns three answers; twenty steps with three cells; exit codes") {
  const Data data;
  const auto train = [&](const std::string& cell, const std::string& steps, const std::string& join) {
    const std::string out = data.dir / (cell + steps);
    const Result r =
        run("babi",
            {"--data",    data.dir.path, "--task",  "5",     "--size", "1k",   "--cell",  cell,  "--hidden",      "8",
             "--join",    join,          "--batch", "3",     "--lr",   "0.01", "--steps", steps, "--valid-every", "20",
             "--threads", "1",           "--quiet", "--out", out},
            data.dir.path, {"PATH=" + data.dir.path});
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    return nlohmann::json::parse(read_file(out + "/run.json"));
  };
  CHECK(train("gru", "200", "once")["test"]["accuracy"] == 1);
  for (const std::string cell : {"goru", "lstm", "r_transformer"})
    CHECK(train(cell, "20", "over-time")["test"]["loss"] > 0);
  write_atomically(data.dir / "x.csv", "x\n1\n");
  const Result predicted = run("predict", {data.dir / "lstm20", "--input", data.dir / "x.csv"}, data.dir.path);
  CHECK(predicted.code == 1);
  CHECK_MESSAGE(contains(predicted.err, "is a run whose task has a model of its own, as babi has: only the program"),
                predicted.err);
  const std::string moved = data.dir / "moved";
  std::filesystem::create_directory(moved);
  std::filesystem::rename(data.dir / "babi", moved + "/babi");
  const auto resume = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line{"--resume", data.dir / "lstm20", "--steps", "22", "--quiet"};
    line.insert(line.end(), more.begin(), more.end());
    return run("babi", line, data.dir.path, {"PATH=" + data.dir.path});
  };
  CHECK(contains(resume({}).err, "not found in " + data.dir.path));
  CHECK(resume({"--data", moved}).code == 0);
  const std::string other = data.dir / "other";
  std::filesystem::copy(moved, other, std::filesystem::copy_options::recursive);
  write_atomically(other + "/babi/en-valid/qa5_train.txt",
                   "1 John took apples.\n2 What is John carrying? \tapples\t1\n");
  CHECK(resume({"--data", other}).code == 1);
  const Result missing = run("babi", {"--data", data.dir.path, "--task", "3"}, data.dir.path);
  CHECK(missing.code == 1);
  CHECK(contains(missing.err, "[babi] en-valid-10k/qa3_train.txt: not found in"));
  CHECK(contains(missing.err, "See docs/data.md"));
  CHECK(run("babi", {"--data", moved, "--task", "5"}, data.dir.path).err ==
        "babi: [babi] en-valid-10k/qa5_train.txt: not found in " + moved + "/babi. Hint: --size 1k\n");
  CHECK(run("babi", {"--task", "21"}, data.dir.path).code == 2);
  for (const std::string flag : {"--bidirectional", "--layer-norm", "--residual", "--variational-dropout"}) {
    const auto go = [&](const std::string& word) {
      return run("babi", {"--data", moved, "--task", "5", "--size", "1k", "--dry-run", word}, data.dir.path);
    };
    const Result refused = go(flag);
    CHECK(refused.code == 2);
    CHECK_MESSAGE(
        (contains(refused.err, "babi: " + flag + ": ") && refused.err.ends_with("Hint: " + flag + "=false\n")),
        refused.err);
    CHECK(go(flag + "=false").code == 0);
  }
  CHECK(contains(run("babi", {"--help"}, data.dir.path).out, "--join"));
}
