// Trains the cell of lem.cpp on the adding problem, and says how long a training step takes beside the built-in LSTM's.
#include <reel/training.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace reel;

/// A sequence of T numbers with two of them marked; the answer is the sum of the two.
class Adding final : public Task {
 public:
  explicit Adding(std::int64_t T) : T_(T) {}
  std::string name() const override { return "adding"; }
  ModelShape shape() const override { return {.inputs = 2, .outputs = 1, .every_step = false}; }
  double baseline() const override { return 1.0 / 6; }  // of always answering 1

  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const auto B = static_cast<std::int64_t>(streams.size());
    const auto at = [&](std::int64_t t, std::int64_t b, std::int64_t k) {
      return static_cast<std::size_t>((t * B + b) * 2 + k);
    };
    std::vector<float> x(static_cast<std::size_t>(T_ * B * 2)), y(streams.size());
    for (std::int64_t b = 0; b < B; ++b) {
      const std::uint64_t stream = streams[static_cast<std::size_t>(b)];
      const auto numbers = uniform({T_ + 2}, 0, 1, seed, stream).values<float>();
      const std::int64_t half = T_ / 2;
      const auto draw = [&](std::int64_t i) {  // 0 .. half - 1
        return std::min(half - 1,
                        static_cast<std::int64_t>(numbers[static_cast<std::size_t>(i)] * static_cast<float>(half)));
      };
      for (std::int64_t t = 0; t < T_; ++t) x[at(t, b, 0)] = numbers[static_cast<std::size_t>(t)];
      for (const std::int64_t t : {draw(T_), half + draw(T_ + 1)}) {
        x[at(t, b, 1)] = 1;
        y[static_cast<std::size_t>(b)] += x[at(t, b, 0)];
      }
    }
    return {Tensor::from<float>(x, {T_, B, 2}), Tensor::from<float>(y, {B, 1})};
  }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override { return mse(outputs, batch.y); }

 private:
  std::int64_t T_;
};

struct Outcome {
  double loss, milliseconds;  // of the last steps; the median training step
};

Outcome train(const std::string& cell, const Task& task, std::int64_t hidden, std::int64_t steps) {
  Model model(task.shape(), {.cell = cell, .hidden = hidden}, Init(1));
  Optimizer optimizer(model.trained(), {.kind = "adam", .lr = 5e-3, .clip_norm = 1});
  TrainingStep step(task, model, optimizer, false);
  Examples examples({.batch = 50}, 1);
  std::printf("%s: %lld parameters\n", cell.c_str(), static_cast<long long>(model.count()));
  std::vector<double> times;
  double mean = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    const Batch batch = task.batch(1, examples.train(i));
    Tensors carry;
    const auto start = std::chrono::steady_clock::now();
    const StepResult result = step(batch, {.seed = 1, .step = i}, carry);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    mean = i == 0 ? result.loss : 0.95 * mean + 0.05 * result.loss;
    if ((i + 1) % (steps / 5) == 0) std::printf("  step %4lld  loss %.4f\n", static_cast<long long>(i + 1), mean);
  }
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return {mean, times[times.size() / 2]};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::int64_t steps = argc > 1 ? std::max(5, std::atoi(argv[1])) : 1000;
  backend().set_threads(1);
  const Adding task(50);
  const Outcome lem = train("lem", task, 64, steps), lstm = train("lstm", task, 64, steps);
  std::printf("loss %.4f (answering 1: %.4f), %.2f ms a step; lstm: %.4f, %.2f ms\n", lem.loss, task.baseline(),
              lem.milliseconds, lstm.loss, lstm.milliseconds);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "own_cell: %s\n", e.what());
  return 1;
}
