// A small task for tests of training, in all the kinds that tasks come in.
#pragma once
#include <cmath>

#include "tasks/training/optimizer.h"
#include "tasks/training/training_step.h"
#include "tests/support/check.h"

namespace reel::test {

struct TaskOptions {
  bool symbols = false, every_step = true;
  bool weights = false, scaled = false, carried = false;
  std::int64_t chain = 3;    // how many steps go on one after the other, if states are carried
  std::int64_t lengths = 1;  // how many different lengths of sequences come up in turn
  std::int64_t bad = -1;     // the stream whose target is not a number
  std::int64_t length = 6, batch = 3;
};

/// Sequences of random numbers or symbols, and random numbers to say.
class Little : public Task {
 public:
  explicit Little(const TaskOptions& o) : o_(o) {}
  std::string name() const override { return "little"; }
  ModelShape shape() const override {
    return {.vocabulary = o_.symbols ? 4 : 0, .inputs = o_.symbols ? 0 : 2, .outputs = 2, .every_step = o_.every_step};
  }
  double baseline() const override { return 1; }
  bool continues(const std::vector<std::uint64_t>& streams) const override {
    if (static_cast<std::int64_t>(streams.size()) != o_.batch) return false;  // states of as many sequences as before
    return o_.carried && static_cast<std::int64_t>(streams[0]) / o_.batch % o_.chain != 0;
  }
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    Stream random(seed, streams[0]);
    const auto B = static_cast<std::int64_t>(streams.size());
    const std::int64_t T = o_.length + static_cast<std::int64_t>(streams[0]) / o_.batch % o_.lengths;
    const auto numbers = [&](std::int64_t n) {
      std::vector<float> out;
      for (std::int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(2 * random.uniform() - 1));
      return out;
    };
    Batch b;
    if (o_.symbols) {
      std::vector<std::int32_t> x;
      for (std::int64_t i = 0; i < T * B; ++i) x.push_back(static_cast<std::int32_t>(random.below(4)));
      b.x = Tensor::from<std::int32_t>(x, {T, B});
    } else {
      b.x = Tensor::from<float>(numbers(T * B * 2), {T, B, 2});
    }
    const Shape said = o_.every_step ? Shape{T, B, 2} : Shape{B, 2};
    std::vector<float> y = numbers(said.numel());
    for (const std::uint64_t s : streams) {
      if (static_cast<std::int64_t>(s) == o_.bad) y[0] = std::nanf("");
    }
    b.y = Tensor::from<float>(y, said);
    if (o_.weights) b.weight = abs(Tensor::from<float>(numbers(said.numel()), said));
    return b;
  }
  Tensor loss(const Tensor& outputs, const Batch& b) const override {
    const Tensor error = square(outputs - cast(b.y, outputs.dtype()));
    return b.weight.defined() ? mean(error * cast(b.weight, outputs.dtype())) : mean(error);
  }
  double scale(const Batch& b) const override { return o_.scaled ? sum(cast(abs(b.y), DType::f64)).item() : 1; }
  double accuracy(const Tensor& outputs, const Batch& b) const override {
    return mean(cast(abs(outputs - cast(b.y, outputs.dtype())) < 0.5, DType::f64)).item();
  }
  std::vector<Score> scores(const Tensor& outputs, const Batch& b) const override {
    return {{"error", loss(outputs, b).item(), 1}};  // on the host, both of them
  }

 private:
  TaskOptions o_;
};

inline OptimizerOptions usual_optimizer() {
  OptimizerOptions o;
  o.lr = 1e-2;
  o.clip_norm = 0.5;
  return o;
}

struct Ran {
  std::vector<double> numbers;  // loss and norm of each step
  std::vector<std::vector<std::complex<double>>> parameters;
  int recorded = 0;
  std::string note;
  bool operator==(const Ran& o) const { return numbers == o.numbers && parameters == o.parameters; }
};

/// `count` steps of this model.
inline Ran train_a_little(const Task& task, Model& model, bool graphs, std::int64_t count = 8, std::int64_t batch = 3,
                          const OptimizerOptions& o = usual_optimizer()) {
  Optimizer optimizer(model.trained(), o);
  TrainingStep steps(task, model, optimizer, graphs);
  Ran out;
  Tensors carry;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::uint64_t> streams;
    for (std::int64_t b = 0; b < batch; ++b) streams.push_back(static_cast<std::uint64_t>(i * batch + b));
    if (!task.continues(streams)) carry.clear();
    const StepResult r = steps(task.batch(1, streams), {1, i}, carry, 1 / static_cast<double>(1 + i));
    out.numbers.push_back(r.loss);
    out.numbers.push_back(r.norm);
    if (const auto note = steps.note()) out.note += *note;
  }
  for (const Parameter& p : model.parameters()) out.parameters.push_back(elements(p.value));
  out.recorded = steps.recorded();
  return out;
}
/// The same of a model of its own on that device.
inline Ran train_a_little(const Task& task, const ModelOptions& options, bool graphs, Backend& device,
                          std::int64_t count = 8, std::int64_t batch = 3, DType dtype = DType::f32) {
  Model model(task.shape(), options, Init(3, dtype, device));
  return train_a_little(task, model, graphs, count, batch);
}

}  // namespace reel::test
