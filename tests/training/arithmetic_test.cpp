// The arithmetic of the training loop against the same sums by hand: losses, accuracies and norms of the rows, states
// that are carried or not, and the parameters that the test is made with.
#include <cmath>

#include "tasks/app/train.h"
#include "tasks/training/checkpoint_file.h"
#include "tasks/training/safetensors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t batch_size = 5, train_size = 20, valid_size = 20, test_size = 12;

/// A data set of four batches to train on, four to validate on, and two whole ones and a rest to test on.
class Set final : public Little {
 public:
  explicit Set(TaskOptions o) : Little(with_batches(o)) {}
  Parts parts() const override { return {train_size, valid_size, test_size}; }
  /// By places, as the loss: each score counts as many as it has.
  std::vector<Score> scores(const Tensor& outputs, const Batch& b) const override {
    const auto n = static_cast<double>(b.y.numel());
    return {{"error", n * loss(outputs, b).item(), n}};
  }

 private:
  static TaskOptions with_batches(TaskOptions o) {
    o.batch = batch_size;
    return o;
  }
};

Model model_of(const Task& task, const std::string& cell = "gru") {
  ModelOptions options;
  options.cell = cell, options.hidden = 8;
  return Model(task.shape(), options, Init(3, DType::f64));
}

TrainOptions options(std::int64_t steps, std::int64_t every) {
  TrainOptions o;
  o.steps = steps, o.valid_every = every, o.quiet = true, o.cell = "gru", o.device = "cpu";
  o.examples = {.batch = batch_size, .shuffle = false, .valid_size = 0};
  return o;
}

OptimizerOptions optimizer(const std::string& kind, double lr) {
  OptimizerOptions o;
  o.kind = kind, o.lr = lr;
  return o;
}

struct Run {
  RunRecord record;
  std::vector<RunFolder::Row> rows;
};

Run run(const Task& task, Model& model, const OptimizerOptions& rule, const TrainOptions& o) {
  const TempDir dir;
  RunFolder folder = RunFolder::create(dir / "run", "s", "gru");
  Optimizer optimizer(model.trained(), rule);
  const Outcome outcome = train(task, model, optimizer, folder, o);
  return {outcome.record, folder.rows()};
}

/// Streams first .. first + count - 1 in batches.
std::vector<std::vector<std::uint64_t>> batches(std::uint64_t first, std::uint64_t count) {
  std::vector<std::vector<std::uint64_t>> out;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % batch_size == 0) out.emplace_back();
    out.back().push_back(first + i);
  }
  return out;
}

struct Means {
  double loss = 0, accuracy = 0;
};

/// Means over all places of these batches by their weights, and states as the task says.
Means by_hand(const Task& task, const Model& model, const std::vector<std::vector<std::uint64_t>>& all) {
  Means sums;
  double total = 0;
  Tensors carry;
  for (const auto& streams : all) {
    if (!task.continues(streams)) carry.clear();
    const Batch batch = task.batch(1, streams);
    const Tensor outputs = model.forward(batch, std::nullopt, &carry);
    double n = 0;
    if (batch.weight.defined())
      for (const float w : batch.weight.values<float>()) n += static_cast<double>(w);
    else
      n = static_cast<double>(batch.y.numel());
    sums.loss += n * task.loss(outputs, batch).item();
    sums.accuracy += n * task.accuracy(outputs, batch);
    total += n;
  }
  return {sums.loss / total, sums.accuracy / total};
}

}  // namespace

TEST_CASE("a validation is the mean over all places of its batches, by weight; states go on only where the task says") {
  for (const bool weights : {false, true}) {
    for (const bool carried : {false, true}) {
      CAPTURE(weights);
      CAPTURE(carried);
      const Set task({.weights = weights, .carried = carried});
      Model model = model_of(task);
      TrainOptions o = options(6, 6);
      o.test = false;
      const Run r = run(task, model, optimizer("adam", 0.01), o);
      const Means expected = by_hand(task, model, batches(train_size, valid_size));
      CHECK(r.record.valid_loss == doctest::Approx(expected.loss).epsilon(1e-12));
      CHECK(r.record.accuracy == doctest::Approx(expected.accuracy).epsilon(1e-12));
      CHECK(r.rows.back().valid_loss == doctest::Approx(expected.loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("the validation of every cell is that of its model, by hand") {
  const Set task({.weights = true, .carried = true});
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    Model model = model_of(task, type.name);
    TrainOptions o = options(3, 3);
    o.test = false;
    const Run r = run(task, model, optimizer("adam", 0.001), o);
    CHECK(r.record.valid_loss ==
          doctest::Approx(by_hand(task, model, batches(train_size, valid_size)).loss).epsilon(1e-12));
  }
}

TEST_CASE("a row has the means of loss and gradient norm over the steps since the row before") {
  // With a rate of 0 the parameters stay, so that each step's numbers can be had again.
  for (const bool carried : {false, true}) {
    CAPTURE(carried);
    const Set task({.carried = carried});
    Model model = model_of(task);
    TrainOptions o = options(9, 4);
    o.test = false;
    const Run r = run(task, model, optimizer("sgd", 0), o);
    REQUIRE(r.rows.size() == 3);  // after steps 4, 8 and 9

    const auto all = batches(0, train_size);
    Tensors wrt, carry;
    for (const Parameter& p : model.trained()) wrt.push_back(p.value);
    std::size_t step = 0;
    for (const std::size_t count : {4U, 4U, 1U}) {
      double loss = 0, norm = 0;
      for (std::size_t k = 0; k < count; ++k, ++step) {
        const auto& streams = all[step % all.size()];
        if (!task.continues(streams)) carry.clear();
        const Batch batch = task.batch(1, streams);
        Tape tape;
        const Tensor l = task.loss(model.forward(batch, std::nullopt, &carry), batch);
        double squares = 0;
        for (const Tensor& g : grad({l}, wrt))
          for (const double x : g.values<double>()) squares += x * x;
        loss += l.item() / static_cast<double>(count);
        norm += std::sqrt(squares) / static_cast<double>(count);
      }
      const RunFolder::Row& row = r.rows[(step - 1) / 4];
      CHECK(row.step == static_cast<std::int64_t>(step));
      CHECK(row.examples == static_cast<std::int64_t>(step) * batch_size);
      CHECK(row.train_loss == doctest::Approx(loss).epsilon(1e-5));  // files have six digits
      CHECK(row.grad_norm == doctest::Approx(norm).epsilon(1e-5));
    }
  }
}

TEST_CASE("the loss of a row of four steps is the mean of four rows of one") {
  const Set task({});
  const auto rows = [&](std::int64_t every) {
    Model model = model_of(task);
    return run(task, model, usual_optimizer(), options(12, every)).rows;
  };
  const auto each = rows(1), some = rows(4);
  REQUIRE(each.size() == 12);
  REQUIRE(some.size() == 3);
  for (std::size_t r = 0; r < 3; ++r) {
    double mean = 0;
    for (std::size_t k = 0; k < 4; ++k) mean += each[4 * r + k].train_loss / 4;
    CHECK(some[r].train_loss == doctest::Approx(mean).epsilon(1e-5));
    CHECK(some[r].valid_loss == each[4 * r + 3].valid_loss);
  }
}

TEST_CASE("the test is made with the parameters of the lowest validation loss, not with the last") {
  for (const bool weights : {false, true}) {
    CAPTURE(weights);
    const TempDir dir;
    const Set task({.weights = weights});
    Model model = model_of(task);
    RunFolder folder = RunFolder::create(dir / "run", "s", "gru");
    Optimizer rule(model.trained(), optimizer("adam", 0.3));  // wild
    const RunRecord record = train(task, model, rule, folder, options(40, 4)).record;
    REQUIRE(record.best_step < record.steps);
    const TensorFile best = load_safetensors(folder.file("best.safetensors"), backend());
    for (const Parameter& p : model.parameters()) CHECK(elements(p.value) == elements(best.at(p.name)));

    const RunFolder::Row best_row = folder.rows()[static_cast<std::size_t>(record.best_step / 4 - 1)];
    CHECK(by_hand(task, model, batches(train_size, valid_size)).loss ==
          doctest::Approx(best_row.valid_loss).epsilon(1e-5));
    const Means expected = by_hand(task, model, batches(train_size + valid_size, test_size));
    REQUIRE(record.test.size() == 3);
    CHECK(record.test[0].second == doctest::Approx(expected.loss).epsilon(1e-12));
    CHECK(record.test[1].second == doctest::Approx(expected.accuracy).epsilon(1e-12));
    double sum = 0, count = 0;
    for (const auto& streams : batches(train_size + valid_size, test_size)) {
      const Batch batch = task.batch(1, streams);
      const auto n = static_cast<double>(batch.y.numel());
      sum += n * task.loss(model.forward(batch, std::nullopt), batch).item();
      count += n;
    }
    CHECK(record.test[2].second == doctest::Approx(sum / count).epsilon(1e-12));
  }
}

TEST_CASE("the best validation by accuracy: the highest, and among equals the lowest loss; also across a resumed run") {
  constexpr Best first{4, 0.5, 0.75};
  CHECK(first.beaten_by({8, 0.6, 0.8}, true));
  CHECK_FALSE(first.beaten_by({8, 0.4, 0.7}, true));
  CHECK(first.beaten_by({8, 0.4, 0.75}, true));
  CHECK_FALSE(first.beaten_by({8, 0.6, 0.75}, true));
  CHECK(first.beaten_by({8, 0.4, 0.7}, false));
  CHECK(Best().beaten_by({4, 0.5, 0}, true));
  CHECK(Best{4, 0.5}.beaten_by({8, 0.6, 0.8}, true));  // of a file without accuracy
  const TempDir dir;
  const Set task({});
  const auto go = [&](const std::string& name, const std::vector<std::int64_t>& ends) {
    Model model = model_of(task);
    RunFolder folder = RunFolder::create(dir / name, "s", "gru");
    RunRecord record;
    for (const std::int64_t steps : ends) {
      Optimizer rule(model.trained(), optimizer("adam", 0.3));
      TrainOptions o = options(steps, 4);
      o.best_by_accuracy = true;
      record = train(task, model, rule, folder, o).record;
    }
    return std::pair{record, folder.rows()};
  };
  const auto [record, rows] = go("whole", {60});
  const auto best = std::ranges::max_element(rows, {}, [](const RunFolder::Row& r) {
    return std::pair{r.accuracy, -r.valid_loss};
  });
  CHECK(record.best_step == best->step);
  CHECK(record.best_accuracy == best->accuracy);
  CHECK(std::ranges::any_of(rows, [&](const auto& r) { return r.valid_loss < best->valid_loss; }));  // not by loss
  CHECK(go("parts", {best->step, best->step + 4, 60}).first.best_step == best->step);

  struct Silent : Little {
    using Little::Little;
    double accuracy(const Tensor& outputs, const Batch& batch) const override { return Task::accuracy(outputs, batch); }
  };
  const Silent silent(TaskOptions{});
  Model model = model_of(silent);
  RunFolder folder = RunFolder::create(dir / "silent", "s", "gru");
  Optimizer rule(model.trained(), optimizer("adam", 0.3));
  TrainOptions o = options(4, 4);
  o.examples.valid_size = valid_size;
  o.best_by_accuracy = true;
  CHECK(error_of([&] { train(silent, model, rule, folder, o); }) ==
        "best: the task little has no accuracy. Hint: best = loss");
  CHECK(folder.rows().empty());
}

TEST_CASE("a schedule by steps: from the step on that it names, the rate has its factor") {
  const Set task({});
  Model model = model_of(task);
  TrainOptions o = options(6, 1);
  o.test = false;
  o.schedule = {.kind = "step", .every = 2, .factor = 0};  // the third update and all behind it change nothing
  const auto rows = run(task, model, optimizer("adam", 0.01), o).rows;
  REQUIRE(rows.size() == 6);
  CHECK(rows[1].valid_loss != rows[0].valid_loss);
  for (std::size_t r = 2; r < 6; ++r) CHECK(rows[r].valid_loss == rows[1].valid_loss);
}

TEST_CASE("a plateau is one of the validation loss: behind it the rate has its factor") {
  const Set task({});
  Model model = model_of(task);
  TrainOptions o = options(40, 1);
  o.test = false;
  o.schedule = {.kind = "plateau", .factor = 0, .patience = 1};
  const auto rows = run(task, model, optimizer("adam", 0.004), o).rows;  // trained on noise: some loss is no better
  std::size_t end = 1;
  while (end < rows.size() && rows[end].valid_loss < rows[end - 1].valid_loss) ++end;
  REQUIRE(end + 1 < rows.size());
  CHECK(end > 1);
  CHECK(rows[end].valid_loss > rows[end - 1].valid_loss);
  for (std::size_t r = end + 1; r < rows.size(); ++r) CHECK(rows[r].valid_loss == rows[end].valid_loss);
}

namespace {
/// A task whose loss is taken times a number to be trained on.
class Scaled final : public Little {
 public:
  explicit Scaled(double scale) : Little({.batch = batch_size}), scale_(scale) {}
  double scale(const Batch&) const override { return scale_; }

 private:
  double scale_;
};
}  // namespace

TEST_CASE("a task's scale is that of the gradients, below 1 and above, and not of the loss that is told") {
  const auto after = [](double scale) {
    const Scaled task(scale);
    Model model = model_of(task);
    Optimizer rule(model.trained(), optimizer("sgd", 0.1));
    TrainingStep steps(task, model, rule, false);
    Tensors carry;
    const StepResult r = steps(task.batch(1, {0, 1, 2, 3, 4}), {1, 0}, carry, 1);
    Tensors out;
    for (const Parameter& p : model.parameters()) out.push_back(p.value);
    return std::pair(r, out);
  };
  const Scaled none(1);
  const Model start = model_of(none);
  const auto [one, at_one] = after(1);
  for (const double scale : {0.5, 3.0}) {
    CAPTURE(scale);
    const auto [r, values] = after(scale);
    CHECK(r.loss == one.loss);
    CHECK(r.norm == doctest::Approx(scale * one.norm).epsilon(1e-12));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Tensor& p = start.parameters()[i].value;
      CHECK(difference(values[i] - p, scale * (at_one[i] - p)) < 1e-14);
    }
  }
}
