// Data sets in training: the parts, the test with the best parameters, states carried from batch to batch.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "tasks/app/train.h"
#include "tasks/training/checkpoint.h"
#include "tests/support/check.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Running sums of a sequence cut into windows: only with the states of the window before can they be said. Streams are
/// tracks of `windows` windows, window after window, as of a text.
class Sums final : public Task {
 public:
  explicit Sums(bool carried) : carried_(carried) {}
  std::string name() const override { return "sums"; }
  ModelShape shape() const override { return {.inputs = 1, .outputs = 1}; }
  double baseline() const override { return 1; }
  Parts parts() const override { return {tracks * windows, tracks * windows, tracks * windows, true}; }
  bool continues(const std::vector<std::uint64_t>& streams) const override {
    return carried_ && streams[0] / tracks % windows > 0;
  }
  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size();
    std::vector<double> x(length * B), y(length * B);
    for (std::size_t b = 0; b < B; ++b) {
      const std::uint64_t part = streams[b] / (tracks * windows), place = streams[b] % (tracks * windows);
      Stream random(9, part * tracks + place % tracks);
      double sum = 0;
      for (std::uint64_t t = 0; t < (place / tracks + 1) * length; ++t) {
        const double value = random.uniform() - 0.5;
        sum += value;
        if (t < place / tracks * length) continue;
        const std::size_t at = (t - place / tracks * length) * B + b;
        x[at] = value;
        y[at] = sum;
      }
    }
    const Shape shape{length, static_cast<std::int64_t>(B), 1};
    return {Tensor::from<double>(x, shape), Tensor::from<double>(y, shape)};
  }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override { return mse(outputs, batch.y); }
  std::vector<Score> scores(const Tensor& outputs, const Batch& batch) const override {
    return {{"twice", 2 * loss(outputs, batch).item(), 1}};
  }

  static constexpr std::uint64_t tracks = 5, windows = 4, length = 6;

 private:
  bool carried_;
};

/// A model that can say sums: h' = h + x, and the head as it starts.
Model make() {
  ModelOptions options;
  options.cell = "gru", options.hidden = 8;
  return Model({.inputs = 1, .outputs = 1}, options, Init(3, DType::f64));
}

TrainOptions options(std::int64_t steps, std::int64_t patience = 0) {
  TrainOptions o;
  o.steps = steps, o.patience = patience, o.quiet = true, o.cell = "gru", o.device = "cpu";
  o.examples = {.batch = static_cast<std::int64_t>(Sums::tracks), .valid_size = 0};
  return o;
}

Outcome trained(const Task& task, Model& model, RunFolder& folder, std::int64_t steps) {
  OptimizerOptions adam;
  adam.kind = "adam", adam.lr = 0.01;
  Optimizer optimizer(model.trained(), adam);
  return train(task, model, optimizer, folder, options(steps));
}

}  // namespace

TEST_CASE("parts: train, validate and test on streams in a row; a part of them; too many are refused") {
  Examples all({.batch = 4, .shuffle = false, .valid_size = 0}, 1, {10, 5, 3});
  CHECK(all.steps_per_epoch() == 3);
  CHECK(all.train(2) == std::vector<std::uint64_t>{8, 9, 0, 1});
  CHECK(all.valid() == std::vector<std::vector<std::uint64_t>>{{10, 11, 12, 13}, {14}});
  CHECK(all.test() == std::vector<std::vector<std::uint64_t>>{{15, 16, 17}});
  Examples few({.batch = 4, .examples = 2, .shuffle = false, .valid_size = 1}, 1, {10, 5, 3});
  CHECK(few.train(1) == std::vector<std::uint64_t>{0, 1, 0, 1});
  CHECK(few.valid() == std::vector<std::vector<std::uint64_t>>{{10}});
  CHECK(few.test() == std::vector<std::vector<std::uint64_t>>{{15, 16, 17}});
  CHECK(error_of([] {
          Examples({.examples = 11}, 1, {10, 500, 3});
        }) == "examples: at most the 10 of the data set expected, got 11");
  CHECK(error_of([] {
          Examples({.valid_size = 6}, 1, {10, 5, 3});
        }) == "valid-size: at most the 5 of the data set expected, got 6");
  CHECK(contains(error_of([] { Examples({.valid_size = 0}, 1); }), "valid-size: 1 or more are needed"));
  Examples ordered({.batch = 4, .valid_size = 0}, 1, {.train = 8, .valid = 5, .ordered = true});
  CHECK(ordered.train(1) == std::vector<std::uint64_t>{4, 5, 6, 7});
  CHECK(Examples({}, 1).test().empty());
  CHECK(Examples({}, 1).steps_per_epoch() == 0);
}

TEST_CASE("shuffled: an epoch visits each example once, in a new order, even where a batch crosses into the next") {
  const ExampleOptions options{.batch = 3, .valid_size = 1};
  Examples examples(options, 1, {5, 5, 5});
  std::vector<std::uint64_t> all;
  for (std::int64_t step = 0; step < 20; ++step) {
    const auto drawn = examples.train(step);
    CHECK(Examples(options, 1, {5, 5, 5}).train(step) == drawn);  // as a resumed run asks
    all.insert(all.end(), drawn.begin(), drawn.end());
  }
  std::set<std::vector<std::uint64_t>> orders;
  for (auto pass = all.begin(); pass != all.end(); pass += 5) {
    std::vector<std::uint64_t> order(pass, pass + 5);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    CHECK(order == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
  }
  CHECK(orders.size() > 9);  // of 12
}

TEST_CASE("shuffled: every order comes as often as any other") {
  constexpr int passes = 1200;
  Examples three({.batch = 3, .valid_size = 1}, 1, {3, 1, 1});
  std::map<std::vector<std::uint64_t>, int> count;
  for (std::int64_t pass = 0; pass < passes; ++pass) ++count[three.train(pass)];
  CHECK(count.size() == 6);
  for (const auto& [order, times] : count) CHECK(std::abs(times - passes / 6) < 52);  // four standard deviations
}

TEST_CASE("carry: two windows, the second from the states of the first, are one long window; for stacks of any cell") {
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    ModelOptions o;
    o.cell = type.name, o.hidden = 8, o.layers = 2;
    const Model model({.inputs = 2, .outputs = 3}, o, Init(5, DType::f64));
    const Tensor x = random({9, 4, 2}, 1), first = slice(x, 0, 0, 5), second = slice(x, 0, 5, 9);
    Tensors carry;
    const Tensor a = model(first, std::nullopt, &carry), b = model(second, std::nullopt, &carry);
    if (type.name == "r_transformer") continue;  // sees what is in its window
    CHECK(difference(concat({a, b}, 0), model(x)) < 1e-12);
    CHECK(difference(b, model(second)) > 1e-9);
  }
}

TEST_CASE("training carries states from window to window, and tests with the best parameters") {
  const TempDir dir;
  const Sums with(true), without(false);
  Model a = make(), b = make();
  RunFolder folder_a = RunFolder::create(dir / "a", "s", "gru"), folder_b = RunFolder::create(dir / "b", "s", "gru");
  const RunRecord carried = trained(with, a, folder_a, 600).record, cut = trained(without, b, folder_b, 600).record;
  CHECK(carried.valid_loss < 0.3 * cut.valid_loss);

  REQUIRE(carried.test.size() == 2);
  CHECK(carried.test[0].first == "loss");
  CHECK(carried.test[1].first == "twice");
  CHECK(carried.test[1].second == doctest::Approx(2 * carried.test[0].second));
  double lowest = INFINITY;
  std::int64_t step = 0;
  for (const auto& row : folder_a.rows()) {
    CHECK(row.step % 4 == 0);  // an epoch is four windows
    if (row.valid_loss < lowest) lowest = row.valid_loss, step = row.step;
  }
  CHECK(carried.best_step == step);
  CHECK(best_of(folder_a.file("best.safetensors")).loss == lowest);
  CHECK(best_of(folder_a.file("none")).step == -1);

  // The test by hand, with the parameters that the model has now.
  double total = 0;
  Tensors carry;
  for (std::uint64_t w = 0; w < Sums::windows; ++w) {
    std::vector<std::uint64_t> place = streams(Sums::tracks);
    for (auto& s : place) s += (2 * Sums::windows + w) * Sums::tracks;
    const Batch batch = with.batch(1, place);
    total += with.loss(a.forward(batch, std::nullopt, &carry), batch).item();
  }
  CHECK(total / Sums::windows == doctest::Approx(carried.test[0].second));
}

TEST_CASE("a run that is resumed in the middle of a track goes on with its states, to the same last bit") {
  const TempDir dir;
  const Sums task(true);
  Model whole = make(), parts = make();
  RunFolder one = RunFolder::create(dir / "one", "s", "gru"), two = RunFolder::create(dir / "two", "s", "gru");
  const Outcome at_once = trained(task, whole, one, 22);
  (void)trained(task, parts, two, 10);  // 10 = 2 mod 4: within a track
  const Outcome resumed = trained(task, parts, two, 22);
  CHECK(resumed.record.test == at_once.record.test);
  for (std::size_t i = 0; i < whole.parameters().size(); ++i)
    CHECK(elements(whole.parameters()[i].value) == elements(parts.parameters()[i].value));
}

TEST_CASE(
    "patience: the run ends after so many validations without a lower loss, and when it is resumed it is still over") {
  const TempDir dir;
  const Sums task(false);
  Model model = make();
  RunFolder folder = RunFolder::create(dir / "run", "s", "gru");
  OptimizerOptions wild;
  wild.kind = "adam", wild.lr = 0.3;
  const auto go = [&] {
    Optimizer optimizer(model.trained(), wild);
    return train(task, model, optimizer, folder, options(4000, 3));
  };
  const Outcome first = go();
  CHECK_FALSE(first.interrupted);
  CHECK(first.record.finished);
  CHECK(first.record.steps < 4000);
  CHECK(first.record.steps == first.record.best_step + 3 * 4);
  const auto rows = folder.rows();
  const Outcome again = go();
  CHECK(again.record.steps == first.record.steps);
  CHECK(folder.rows().size() == rows.size());
  CHECK(again.record.test == first.record.test);
}

TEST_CASE("patience: what a run has seen counts, not what is in its metrics.csv by now") {
  struct Remover : Observer {
    void begun(const Moment&) override {}
    void ended(const Moment&) override {}
    void drawn(const RunFolder&) override {}
    void validated(const Moment& at, const RunFolder::Row&, const Tensors&) override {
      std::filesystem::remove(at.folder.file("metrics.csv"));
    }
  } remover;
  const TempDir dir;
  const Sums task(false);
  Model model = make();
  RunFolder folder = RunFolder::create(dir / "run", "s", "gru");
  OptimizerOptions wild;
  wild.kind = "adam", wild.lr = 0.3;
  Optimizer optimizer(model.trained(), wild);
  TrainOptions o = options(4000, 3);
  o.observers = {&remover};
  const Outcome ended = train(task, model, optimizer, folder, o);
  CHECK(ended.record.steps < 4000);
  CHECK(ended.record.steps == ended.record.best_step + 3 * 4);
}
