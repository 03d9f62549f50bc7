// The temporal order problem (Hochreiter and Schmidhuber 1997, experiment 6a). A sequence begins with E and ends with
// B. Between them are symbols drawn from a, b, c and d, but for two places, where X or Y stands: one of them is early,
// the other after the middle. At B the network says which two stood there, and in which order: XX, XY, YX or YY.
#include <reel/app.h>

#include <cmath>

namespace {

using namespace reel;

class TemporalOrder final : public Task {
 public:
  TemporalOrder(std::int64_t length, const Setup& setup) : length_(length) {
    require_batch("temporal order", longest(), setup.examples.batch, 12);
  }
  std::string name() const override { return "own_task"; }
  std::string title() const override { return fmt::format("temporal order, {} symbols", length_); }
  ModelShape shape() const override { return {.vocabulary = symbols, .outputs = 4}; }
  /// The cross entropy of guessing one of four.
  double baseline() const override { return std::log(4.0); }

  /// x and y i32 [T, B], with T of the longest possible sequence. The answer y counts at the last symbol alone:
  /// `weight` [T, B] is 1 there and 0 elsewhere, also in the padding of shorter sequences.
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const auto T = static_cast<std::size_t>(longest()), B = streams.size();
    std::vector<std::int32_t> x(T * B, padding), y(T * B, 0);
    std::vector<float> weight(T * B, 0);
    for (std::size_t b = 0; b < B; ++b) {
      Stream random(seed, streams[b]);
      const auto between = [&](std::int64_t low, std::int64_t high) {  // both included
        return static_cast<std::size_t>(low + random.below(high - low + 1));
      };
      const std::size_t last = between(length_, longest()) - 1, first = between(length_ / 10, length_ / 5),
                        second = between(length_ / 2, length_ * 3 / 5);
      for (std::size_t t = 1; t < last; ++t) x[t * B + b] = distractors + static_cast<std::int32_t>(random.below(4));
      const auto one = static_cast<std::int32_t>(random.below(2)), two = static_cast<std::int32_t>(random.below(2));
      x[b] = begin;
      x[first * B + b] = relevant + one;
      x[second * B + b] = relevant + two;
      x[last * B + b] = trigger;
      y[last * B + b] = 2 * one + two;
      weight[last * B + b] = 1;
    }
    const Shape shape{longest(), static_cast<std::int64_t>(B)};
    return {Tensor::from<std::int32_t>(x, shape), Tensor::from<std::int32_t>(y, shape),
            Tensor::from<float>(weight, shape)};
  }

  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    return cross_entropy(outputs, batch.y, {.weight = cast(batch.weight, outputs.dtype())});
  }
  /// The share of sequences whose class has the largest output at their last symbol.
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    const Tensor right = cast(equal(argmax(outputs), batch.y), DType::f32);
    return (sum(right * batch.weight) / sum(batch.weight)).item();
  }

 private:
  static constexpr std::int32_t begin = 0, trigger = 1, relevant = 2, distractors = 4, padding = 8;  // X is 2, a is 4
  static constexpr std::int64_t symbols = 9;
  std::int64_t longest() const { return length_ + length_ / 10; }

  std::int64_t length_;
};

}  // namespace

int main(int argc, char** argv) {
  std::int64_t length = 100;
  return run_task(argc, argv,
                  {.name = "own_task",
                   .description = "Temporal order: which of two symbols stood early, and which after the middle.",
                   .steps = 5000,
                   .options =
                       [&](Options& options) {
                         options.add("length", length, "symbols of the shortest sequence; the longest has a tenth more",
                                     "Task", Bounds{.low = 10, .high = most::time});
                       },
                   .task = [&](const Setup& setup) { return std::make_unique<TemporalOrder>(length, setup); }});
}
