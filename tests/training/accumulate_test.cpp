// A batch in parts: the sum of their gradients is the whole batch's, whatever is weighted, scaled, carried or captured.
#include <algorithm>

#include "tests/support/cells.h"
#include "tests/support/recording_device.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t size = 6;

struct Features {
  bool weights = false, scaled = false, carried = false, ragged = false;
};

/// Each stream is a sequence of its own; those of one batch may be of unequal length and weight.
class Apart : public Task {
 public:
  explicit Apart(const Features& kind, std::int64_t bad = -1) : kind_(kind), bad_(bad) {}
  std::string name() const override { return "apart"; }
  ModelShape shape() const override { return {.inputs = 2, .outputs = 2, .every_step = true}; }
  double baseline() const override { return 1; }
  bool continues(const std::vector<std::uint64_t>& streams) const override { return kind_.carried && streams[0] > 0; }
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const auto B = std::ssize(streams);
    std::int64_t T = 0;
    const auto length = [&](std::uint64_t s) { return kind_.ragged ? 3 + static_cast<std::int64_t>(s * 5 % 4) : 5; };
    for (const std::uint64_t s : streams) T = std::max(T, length(s));
    const auto numbers = static_cast<std::size_t>(T * B);
    std::vector<double> x(2 * numbers, 0), y(2 * numbers, 0), weight(2 * numbers, 0);
    std::vector<std::int32_t> lengths;
    for (std::int64_t b = 0; b < B; ++b) {
      const std::uint64_t s = streams[static_cast<std::size_t>(b)];
      Stream random(seed, s);
      for (std::int64_t t = 0; t < length(s); ++t)
        for (std::int64_t k = 0; k < 2; ++k) {
          const auto i = static_cast<std::size_t>((t * B + b) * 2 + k);
          x[i] = 2 * random.uniform() - 1;
          y[i] = static_cast<std::int64_t>(s) == bad_ ? std::nan("") : random.uniform();
          weight[i] = kind_.weights ? random.uniform() : 1;
        }
      lengths.push_back(static_cast<std::int32_t>(length(s)));
    }
    const Shape shape{T, B, 2};
    Batch out{Tensor::from<double>(x, shape), Tensor::from<double>(y, shape)};
    if (kind_.weights || kind_.ragged) out.weight = Tensor::from<double>(weight, shape);
    if (kind_.ragged) out.lengths = Tensor::from<std::int32_t>(lengths, {B});
    return out;
  }
  Tensor loss(const Tensor& outputs, const Batch& b) const override {
    const Tensor error = square(outputs - cast(b.y, outputs.dtype()));
    if (!b.weight.defined()) return mean(error);
    const Tensor weight = cast(b.weight, outputs.dtype());
    return sum(error * weight) / sum(weight);
  }
  double scale(const Batch& b) const override { return kind_.scaled ? static_cast<double>(b.x.dim(0)) : 1; }

 private:
  Features kind_;
  std::int64_t bad_;
};

struct Trained {
  Ran ran;
  Tensors parameters, carry;
};

/// `count` steps of a model on this device, each batch in so many parts.
Trained trained(const Task& task, const ModelOptions& options, std::int64_t parts, bool graphs = false,
                std::int64_t count = 4, Backend& device = backend()) {
  Model model(task.shape(), options, Init(3, DType::f64, device));
  OptimizerOptions o = usual_optimizer();
  o.weight_decay = 0.01;
  Optimizer optimizer(model.trained(), o);
  TrainingStep steps(task, model, optimizer, graphs);
  Trained out;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::uint64_t> streams;
    for (std::int64_t b = 0; b < size; ++b) streams.push_back(static_cast<std::uint64_t>(i * size + b));
    const Drawn drawn = draw(task, 1, streams, parts);
    REQUIRE(std::ssize(drawn.parts) == (parts > 1 ? parts : 0));
    if (!task.continues(streams)) out.carry.clear();
    const StepResult r = steps(drawn.batch, {1, i}, out.carry, 1, drawn.parts);
    out.ran.numbers.push_back(r.loss);
    out.ran.numbers.push_back(r.norm);
  }
  CHECK(optimizer.steps() == count);
  for (const Parameter& p : model.parameters()) {
    out.ran.parameters.push_back(elements(p.value));
    out.parameters.push_back(p.value);
  }
  out.ran.recorded = steps.recorded();
  return out;
}

void check_parts(const Task& task, const ModelOptions& options) {
  const Trained whole = trained(task, options, 1);
  for (const std::int64_t parts : {2, 3, 6}) {
    CAPTURE(parts);
    const Trained cut = trained(task, options, parts);
    for (std::size_t i = 0; i < whole.ran.numbers.size(); ++i)
      CHECK(cut.ran.numbers[i] == doctest::Approx(whole.ran.numbers[i]).epsilon(1e-12));
    for (std::size_t i = 0; i < whole.parameters.size(); ++i)
      CHECK(difference(cut.parameters[i], whole.parameters[i]) < 1e-11);
    REQUIRE(cut.carry.size() == whole.carry.size());
    for (std::size_t i = 0; i < whole.carry.size(); ++i) CHECK(difference(cut.carry[i], whole.carry[i]) < 1e-11);
  }
}

}  // namespace

TEST_CASE("four updates in parts are those of whole batches, for every cell: penalties, retractions, projections") {
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    check_parts(Apart({}), {.cell = type.name, .hidden = 8});
  }
}

TEST_CASE("the penalty of a cell is trained, and counts once for all parts") {
  const Apart task({});
  for (const std::int64_t parts : {1, 3}) {
    CAPTURE(parts);
    Tensor alpha;
    const auto gradient = [&](const std::string& delta) {
      Model model(task.shape(), {.cell = "nnrnn", .hidden = 8, .settings = {{"delta", delta}, {"T_decay", "0"}}},
                  Init(3, DType::f64));
      const std::vector<Parameter> all = model.trained();
      const auto at = std::find_if(all.begin(), all.end(), [](const auto& p) { return p.name == "cell.alpha"; });
      REQUIRE(at != all.end());
      alpha = random(at->value.shape(), 5);
      Tensor(at->value).assign(alpha);
      Optimizer optimizer(all, usual_optimizer());
      const Drawn drawn = draw(task, 1, {0, 1, 2, 3, 4, 5}, parts);
      Tensors carry, gradients;
      TrainingStep(task, model, optimizer, false)(drawn.batch, {1, 0}, carry, 1, drawn.parts, &gradients);
      return gradients.at(static_cast<std::size_t>(at - all.begin()));
    };
    const Tensor with = gradient("0.25"), without = gradient("0");
    CHECK(difference(with - without, 0.5 * (alpha - 1)) < 1e-14);  // of 0.25 sum (alpha - 1)^2
  }
}

TEST_CASE("parts count by their weights; lengths, scales of the loss and carried states are right") {
  const ModelOptions options{.hidden = 6, .stack = {{"lstm", 6}, {"gru", 5}}};
  for (const Features& kind : std::vector<Features>{{.weights = true},
                                                    {.scaled = true},
                                                    {.carried = true},
                                                    {.ragged = true},
                                                    {.weights = true, .scaled = true, .carried = true, .ragged = true}})
    check_parts(Apart(kind), options);
}

TEST_CASE("captured passes give the same bits, and one capture serves all parts") {
  RecordingDevice& device = RecordingDevice::get();
  for (const std::string cell : {"gru", "nnrnn"}) {  // nnrnn has a penalty, and is not captured
    for (const bool carried : {false, true}) {
      CAPTURE(cell);
      CAPTURE(carried);
      const Apart task({.scaled = true, .carried = carried});
      const Trained plain = trained(task, {.cell = cell, .hidden = 8}, 3, false, 6, device),
                    graph = trained(task, {.cell = cell, .hidden = 8}, 3, true, 6, device);
      CHECK(plain.ran == graph.ran);
      CHECK(plain.ran.recorded == 0);
      // with carried states the first update's passes are a kind of their own
      CHECK(graph.ran.recorded == (cell == "nnrnn" ? 0 : carried ? 2 : 1));
    }
  }
}

TEST_CASE("parts drop out by random numbers of their own") {
  // The same sequence in both parts: with the same numbers dropped, the parts would have the same loss.
  class Twice : public Apart {
   public:
    Twice() : Apart({}) {}
    Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
      return Apart::batch(seed, std::vector<std::uint64_t>(streams.size(), 7));
    }
  };
  const auto losses = [](std::int64_t parts) {
    return trained(Twice(), {.cell = "gru", .hidden = 16, .layers = 2, .dropout = 0.5}, parts, false, 1).ran.numbers;
  };
  CHECK(losses(2)[0] != losses(1)[0]);
  const auto alone = [](std::int64_t step) {
    const Twice task;
    Model model(task.shape(), {.cell = "gru", .hidden = 16, .layers = 2, .dropout = 0.5}, Init(3, DType::f64));
    Optimizer optimizer(model.trained(), usual_optimizer());
    Tensors carry;
    return TrainingStep(task, model, optimizer, false)(task.batch(1, {0, 1, 2}), {1, step}, carry).loss;
  };
  CHECK(losses(2)[0] == doctest::Approx((alone(0) + alone(1)) / 2).epsilon(1e-12));
  CHECK(alone(0) != alone(1));
}

TEST_CASE("a part whose loss is not finite: nothing is updated") {
  const Apart task({}, 4);
  Model model(task.shape(), {.cell = "gru", .hidden = 8}, Init(3, DType::f64));
  Optimizer optimizer(model.trained(), usual_optimizer());
  const auto before = elements(model.parameters()[0].value);
  Tensors carry;
  const Drawn drawn = draw(task, 1, {0, 1, 2, 3, 4, 5}, 3);
  CHECK(std::isnan(TrainingStep(task, model, optimizer, false)(drawn.batch, {1, 0}, carry, 1, drawn.parts).loss));
  CHECK(elements(model.parameters()[0].value) == before);
  CHECK(optimizer.steps() == 0);
}

TEST_CASE("parts divide the batch") {
  CHECK(
      contains(error_of([] { Examples({.batch = 20, .parts = 21}, 1); }), "a batch of 20 cannot be cut into 21 parts"));
  CHECK(error_of([] { Examples({.batch = 20, .parts = 5}, 1); }).empty());
}

TEST_CASE("a loss that is no real scalar names the function of the task") {
  struct Odd : Apart {
    explicit Odd(std::function<Tensor(const Tensor&)> f) : Apart({}), of_outputs(std::move(f)) {}
    Tensor loss(const Tensor& outputs, const Batch&) const override { return of_outputs(outputs); }
    std::function<Tensor(const Tensor&)> of_outputs;
  };
  const auto said = [](const std::function<Tensor(const Tensor&)>& loss) {
    const Odd task(loss);
    Model model(task.shape(), {.cell = "gru", .hidden = 8}, Init(3, DType::f64));
    Optimizer optimizer(model.trained(), usual_optimizer());
    Tensors carry;
    return error_of([&] { TrainingStep(task, model, optimizer, false)(task.batch(1, {0, 1}), {1, 0}, carry, 1); });
  };
  const std::string rule = ", a scalar of f32 or f64 expected. Hint: ";
  CHECK(said([](const Tensor& y) { return mean(y); }).empty());
  CHECK(contains(said([](const Tensor& y) { return mean(y, {0, 1}); }), "[task] Task::loss gives f64 (2,)" + rule));
  CHECK(contains(said([](const Tensor& y) { return mean(complex(y, y)); }), "[task] Task::loss gives c128 ()" + rule));
  CHECK(contains(said([](const Tensor& y) { return cast(mean(y), DType::i32); }), "gives i32 ()" + rule));
  CHECK(contains(said([](const Tensor&) { return Tensor(); }), "gives an undefined tensor" + rule));
}
