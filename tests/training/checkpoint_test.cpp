// Checkpoints: nothing of a damaged or impossible one is taken, and a model that is lost replaces no good one.
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tasks/app/train.h"
#include "tasks/io/files.h"
#include "tasks/training/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

Model little_model(std::uint64_t seed = 3) {
  ModelOptions o;
  o.cell = "gru", o.hidden = 4;
  return Model(Little({}).shape(), o, Init(seed, DType::f32));
}

/// A little model with all that a checkpoint of it holds.
struct Trained {
  Model model;
  Optimizer optimizer;
  Schedule schedule;

  explicit Trained(std::uint64_t seed = 3)
      : model(little_model(seed)), optimizer(model.trained(), adam()), schedule(window()) {}
  static OptimizerOptions adam() {
    OptimizerOptions o;
    o.kind = "adam";
    return o;
  }
  static ScheduleOptions window() {
    ScheduleOptions o;
    o.kind = "window";
    return o;
  }
  static std::vector<Spec> needed(std::int64_t) { return {Tensor::zeros({3, 4}).spec()}; }
  /// Writes what a run has after ten steps.
  void save(const std::string& path) {
    optimizer.set_steps(10);
    schedule.validated(0.5);
    save_checkpoint(path, model, optimizer, schedule, 7, {10, 1.5, {3, 0.25, 2.5}, {Tensor::full({3, 4}, 0.5)}});
  }
  Loaded load(const std::string& path) { return load_checkpoint(path, model, optimizer, schedule, 7, needed); }
  std::string all() const {
    std::string text = fmt::format("{} {}", optimizer.steps(), schedule.state());
    for (const Parameter& p : model.parameters()) text += p.value.str();
    for (const auto& [name, x] : optimizer.state()) text += x.str();
    return text;
  }
};

/// Sets the first element.
void poison(Tensor x, float value) { x.backend().write(x.data(), &value, sizeof value); }

/// The same file as an older Reel wrote it, without a checksum.
std::string without_checksum(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  auto header = nlohmann::ordered_json::parse(bytes.substr(8, length));
  header["__metadata__"].erase("reel.checksum");
  header["__metadata__"].erase("reel.crc32");
  const std::string text = header.dump(), data = bytes.substr(8 + length);
  length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text + data;
}

Outcome train_little(const Task& task, Model& model, RunFolder& folder, double lr, std::int64_t steps = 8,
                     std::vector<Observer*> observers = {}) {
  OptimizerOptions o;
  o.kind = "sgd", o.lr = lr;
  Optimizer optimizer(model.trained(), o);
  TrainOptions t;
  t.steps = steps, t.valid_every = 2, t.quiet = true;
  t.examples = {.batch = 3, .valid_size = 3};
  t.observers = std::move(observers);
  return train(task, model, optimizer, folder, t);
}

/// Somebody presses Ctrl-C in the first step.
struct Pressed final : Little {
  Pressed() : Little({}) {}
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    if (streams[0] == 0) raise(SIGINT);
    return Little::batch(seed, streams);
  }
};

/// Somebody presses Ctrl-C in the first batch of the test, or not.
struct Tested final : Little {
  explicit Tested(bool pressed) : Little({}), pressed_(pressed) {}
  Parts parts() const override { return {6, 3, 6}; }
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    batches += streams[0] >= 9;
    if (pressed_ && streams[0] == 9) raise(SIGINT);
    return Little::batch(seed, streams);
  }
  mutable int batches = 0;  // of the test

 private:
  bool pressed_;
};

}  // namespace

TEST_CASE("Ctrl-C in the test: it ends after the batch, and the resumed run has the test of an uninterrupted one") {
  const TempDir dir;
  const auto go = [](const Tested& task, RunFolder& folder) {
    Model model = little_model();
    return train_little(task, model, folder, 0.01);
  };
  const auto json = [](const RunFolder& folder) { return nlohmann::json::parse(read_file(folder.file("run.json"))); };
  RunFolder cut = RunFolder::create(dir / "cut", "little", "gru"),
            whole = RunFolder::create(dir / "b", "little", "gru");
  const Tested pressed(true), left(false);
  CHECK(go(pressed, cut).interrupted);
  CHECK(pressed.batches == 1);
  CHECK(json(cut)["finished"] == false);
  CHECK_FALSE(json(cut).contains("test"));
  CHECK_FALSE(go(left, cut).interrupted);
  CHECK(left.batches == 2);
  CHECK_FALSE(go(left, whole).interrupted);
  CHECK(json(cut)["finished"] == true);
  CHECK(json(cut)["test"]["loss"].is_number());
  CHECK(json(cut)["test"] == json(whole)["test"]);
}

TEST_CASE("checkpoint: all of it comes back, with or without a checksum") {
  const TempDir dir;
  Trained one(3), two(4), three(5);
  one.save(dir / "c");
  const Loaded loaded = two.load(dir / "c");
  CHECK(loaded.checked);
  CHECK(loaded.at.step == 10);
  CHECK(loaded.at.seconds == 1.5);
  CHECK(loaded.at.running.steps == 3);
  CHECK(loaded.at.running.loss == 0.25);
  CHECK(loaded.at.running.grad_norm == 2.5);
  CHECK(loaded.at.carry.size() == 1);
  CHECK((two.all() == one.all()));
  write_atomically(dir / "old", without_checksum(read_file(dir / "c")));
  CHECK_FALSE(three.load(dir / "old").checked);
  CHECK((three.all() == one.all()));
}

TEST_CASE("checkpoint: one flipped bit anywhere is found, and then nothing has changed") {
  const TempDir dir;
  Trained one(3), two(4);
  one.save(dir / "c");
  const std::string good = read_file(dir / "c"), before = two.all();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    CHECK_THROWS_AS(parse_safetensors("c", bytes), Error);
  }
  std::string bytes = good;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_atomically(dir / "c", bytes);
  CHECK(contains(error_of([&] { two.load(dir / "c"); }), "c] damaged safetensors file: its checksum is wrong"));
  CHECK((two.all() == before));
}

TEST_CASE("checkpoint: every number has its range, every tensor its place, kind and finite elements") {
  const TempDir dir;
  const std::string path = dir / "c";
  Trained one(3), two(4);
  one.save(path);
  const TensorFile good = load_safetensors(path);
  const std::string before = two.all();
  const auto refused = [&](const std::function<void(TensorFile&)>& change, const std::string& part) {
    TensorFile file = good;
    change(file);
    save_safetensors(path, file);
    const std::string text = error_of([&] { two.load(path); });
    CHECK_MESSAGE(contains(text, path + ": "), text);
    CHECK_MESSAGE(contains(text, part), text);
    CHECK((two.all() == before));
  };
  for (const char* key :
       {"step", "seed", "seconds", "updates", "schedule", "running_steps", "running_loss", "running_grad_norm"}) {
    refused([&](TensorFile& f) { f.metadata.erase(key); }, fmt::format("\"{}\" is missing", key));
    for (const char* text : {"", "x", "1 x", "nan"}) refused([&](TensorFile& f) { f.metadata[key] = text; }, "");
  }
  for (const char* key : {"step", "updates", "running_steps", "seconds", "running_grad_norm"})
    refused([&](TensorFile& f) { f.metadata[key] = "-5"; }, fmt::format("\"{}\" is -5, it must be from 0 to", key));
  for (const char* key : {"updates", "running_steps"})
    refused([&](TensorFile& f) { f.metadata[key] = "11"; }, "it must be from 0 to 10");
  refused([](TensorFile& f) { f.metadata["step"] = "9223372036854775808"; }, "not a number");
  refused([](TensorFile& f) { f.metadata["step"] = "9223372036854775807"; }, "it must be from 0 to 9007199254740992");
  for (const char* key : {"seconds", "running_loss", "running_grad_norm"})
    refused([&](TensorFile& f) { f.metadata[key] = "inf"; }, "it must be");
  refused([](TensorFile& f) { f.metadata["seed"] = "8"; }, "another seed");
  for (const char* state : {"1 0 -1", "2 0 -1 0", "-1 0 -1 0", "nan 0 -1 0", "1 inf -1 0", "1 0 -2 0", "1 0 -1 -1",
                            "1 0 -1 0 0.5", "1 0 -1 1 inf", "1 0 -1 1 0.5 x"})
    refused([&](TensorFile& f) { f.metadata["schedule"] = state; }, "no state of one");

  for (std::size_t i = 0; i < good.tensors.size(); ++i) {
    const auto& [name, x] = good.tensors[i];
    CAPTURE(name);
    refused([&](TensorFile& f) { f.tensors.erase(f.tensors.begin() + static_cast<std::ptrdiff_t>(i)); }, "");
    for (const Tensor& other : {Tensor::zeros({3, 5, 2}), Tensor::zeros(x.shape(), DType::f64)})
      refused([&](TensorFile& f) { f.tensors[i].second = other; }, "");
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      const Tensor copy = Tensor::zeros(x.shape());
      poison(copy, bad);
      refused([&](TensorFile& f) { f.tensors[i].second = copy; },
              fmt::format("{}: element 0 is {}", name, std::isnan(bad) ? "NaN" : "infinite"));
    }
  }
  refused([](TensorFile& f) { f.tensors.emplace_back("more", Tensor::zeros({1})); }, "tensors, the model has");
  refused([](TensorFile& f) { f.tensors.emplace_back("carry.2", Tensor::zeros({3, 4})); }, "carry.1 is missing");
  refused(
      [](TensorFile& f) {
        f.tensors.emplace_back("carry.1", Tensor::zeros({3, 4}));
      },
      "the carried states are f32 (3, 4), f32 (3, 4), the next step needs f32 (3, 4)");
  refused([](TensorFile& f) { f.tensors.pop_back(); }, "the carried states are none, the next step needs f32 (3, 4)");
}

TEST_CASE("best parameters: what is no number of a step or a loss is refused") {
  const TempDir dir;
  Trained one;
  save_best(dir / "b", one.model, {4, 0.25});
  CHECK(best_of(dir / "b").step == 4);
  const TensorFile good = load_safetensors(dir / "b");
  CHECK(contains(error_of([&] { save_best(dir / "b", one.model, {}); }), "/b: the step is -1, it must be 1 or more"));
  CHECK(contains(error_of([&] { save_best(dir / "b", one.model, {4, NAN}); }), "/b: the loss is nan, a finite one"));
  CHECK(best_of(dir / "b").step == 4);
  for (const auto& [key, text] : {std::pair{"step", "-1"}, {"step", "0"}, {"valid_loss", "nan"}, {"valid_loss", ""}}) {
    TensorFile file = good;
    file.metadata[key] = text;
    save_safetensors(dir / "b", file);
    CHECK(contains(error_of([&] { best_of(dir / "b"); }), key));
  }
}

TEST_CASE("a model that is not finite is not saved; no cell and no optimiser starts with such values") {
  const TempDir dir;
  for (const bool in_optimizer : {false, true}) {
    Trained one;
    one.save(dir / "c");
    const std::string good = read_file(dir / "c");
    poison(in_optimizer ? one.optimizer.state()[0].second : one.model.parameters()[0].value, NAN);
    CHECK_THROWS_AS(one.save(dir / "c"), Diverged);
    if (!in_optimizer) CHECK_THROWS_AS(save_best(dir / "c", one.model, {4, 0.25}), Diverged);
    CHECK(read_file(dir / "c") == good);
  }
  for (const CellType& type : cell_registry()) {
    ModelOptions o;
    o.cell = type.name, o.hidden = 8;
    const Model model(Little({}).shape(), o, Init(3, DType::f32));
    CHECK(not_finite(model) == "");
    for (const std::string& kind : OptimizerOptions::kinds()) {
      OptimizerOptions options;
      options.kind = kind;
      CHECK(not_finite(Optimizer(model.trained(), options).state()) == "");
    }
  }
}

TEST_CASE("Ctrl-C in the step that loses the model: the good checkpoint stays, and the run says that it diverged") {
  for (const double lr : {1e38, 1e30}) {  // after the step parameters are infinite, or finite and of no use
    const TempDir dir;
    Model model = little_model();
    RunFolder folder = RunFolder::create(dir / "r", "little", "gru");
    const std::string text = error_of([&] { train_little(Pressed(), model, folder, lr); });
    CHECK_MESSAGE(contains(text, "at step 1; the last good checkpoint is in " + folder.path() + ", of step 0"), text);
    CHECK(load_safetensors(folder.file("checkpoint.safetensors")).metadata.at("step") == "0");
    const auto record = nlohmann::json::parse(read_file(folder.file("run.json")));
    CHECK(record["finished"] == false);
    CHECK(record["diverged_at_step"] == 1);
    Model again = little_model();
    const Outcome outcome = train_little(Little({}), again, folder, 0.01);
    CHECK(outcome.record.finished);
    CHECK_FALSE(nlohmann::json::parse(read_file(folder.file("run.json"))).contains("diverged_at_step"));
  }
}

TEST_CASE("a run that diverges writes its record, and says what is left of it") {
  const TempDir dir;
  Model model = little_model();
  RunFolder folder = RunFolder::create(dir / "r", "little", "gru");
  TaskOptions o;
  o.bad = 15;  // in the sixth step
  const std::string text = error_of([&] { train_little(Little(o), model, folder, 0.01); });
  CHECK(text == "[train] the loss became NaN at step 6; the last good checkpoint is in " + folder.path() +
                    fmt::format(", of step 4; the best parameters (validation loss {:.6g}, at step 4) are in {}. "
                                "Hint: a lower --lr, or --clip-norm 1",
                                folder.rows()[1].valid_loss, folder.file("best.safetensors")));
  const auto record = nlohmann::json::parse(read_file(folder.file("run.json")));
  CHECK(record["steps"] == 5);
  CHECK(record["diverged_at_step"] == 6);
  CHECK(record["best"]["step"] == 4);
  CHECK(record["valid_loss"].is_number());
  CHECK(folder.rows().size() == 2);
}

TEST_CASE("a model that is lost at a validation is no best one: the run and its record name the one in the file") {
  struct Spoils : Observer {  // the diagonal of A, which scoRNN does not read: the losses stay finite
    explicit Spoils(std::int64_t step) : step_(step) {}
    void begun(const Moment& at) override { spoil(at, 0); }
    void validated(const Moment& at, const RunFolder::Row& row, const Tensors&) override { spoil(at, row.step); }
    void ended(const Moment&) override {}
    void drawn(const RunFolder&) override {}

   private:
    void spoil(const Moment& at, std::int64_t step) const {
      if (step == step_) poison(at.model.cells()[0]->parameters()[0].value, NAN);
    }
    std::int64_t step_;
  };
  for (const std::int64_t step : {0, 2}) {
    const TempDir dir;
    ModelOptions o;
    o.cell = "scornn", o.hidden = 4;
    Model model(Little({}).shape(), o, Init(3, DType::f32));
    RunFolder folder = RunFolder::create(dir / "r", "little", "scornn");
    Spoils spoils(step);
    const std::string text = error_of([&] { train_little(Little({}), model, folder, 0.01, 8, {&spoils}); });
    const std::string best = folder.file("best.safetensors");
    if (step > 0) REQUIRE(folder.rows()[1].valid_loss < folder.rows()[0].valid_loss);
    CHECK_MESSAGE(contains(text, "at step 4; the last good checkpoint") == (step == 2), text);
    CHECK(contains(text, "no better parameters are kept") == (step == 0));
    CHECK(contains(text, fmt::format("at step {}) are in {}", step, best)) == (step > 0));
    CHECK(best_of(best).step == (step > 0 ? step : -1));
    const auto record = nlohmann::json::parse(read_file(folder.file("run.json")));
    CHECK(record.contains("best") == (step > 0));
    if (step > 0) CHECK(record["best"]["step"] == step);
  }
}
