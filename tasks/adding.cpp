// The adding problem: a sequence of numbers, two of them marked; the answer at the end is the sum of the two.
#include <cmath>

#include "tasks/app/run.h"

namespace reel {
namespace {

struct AddingOptions {
  std::int64_t length = 200;
  std::string markers = "halves";
};

/// The two marked steps of a sequence of length T, 0-based.
std::pair<std::int64_t, std::int64_t> marked(const std::string& rule, std::int64_t T, Stream& random) {
  if (rule == "scornn") {  // ENRNN and scoRNN: unequal parts
    const std::int64_t f = (T - 1) / 2, first = random.below(f);
    return {first, f + random.below(T - f)};
  }
  if (rule == "anywhere") {  // Henaff, TCN: any two different steps
    const std::int64_t first = random.below(T), second = random.below(T - 1);
    return {first, second < first ? second : second + 1};
  }
  if (rule == "ornn") {  // both among the first T - 1 steps; if they collide, the second moves on by one
    const std::int64_t first = random.below(T - 1), second = random.below(T - 1);
    return {first, second == first ? second + 1 : second};
  }
  if (rule == "nnrnn") {  // the second half starts at the middle, rounded up
    const std::int64_t half = (T + 1) / 2, first = random.below(T / 2);
    return {first, half + random.below(T - half)};
  }
  const std::int64_t half = T / 2, first = random.below(half);  // SRNN, uRNN, JANET: two equal halves
  return {first, half + random.below(half)};
}

class Adding final : public Task {
 public:
  Adding(const AddingOptions& o, const Setup& setup) : o_(o) {
    require_batch("adding", o.length, setup.examples.batch, 16);
  }
  std::string name() const override { return "adding"; }
  std::string title() const override { return fmt::format("adding, T = {}", o_.length); }
  ModelShape shape() const override { return {.inputs = 2, .outputs = 1, .every_step = false}; }
  /// The mean squared error of always answering 1: the variance of a sum of two uniform numbers.
  double baseline() const override { return 1.0 / 6; }

  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size(), T = static_cast<std::size_t>(o_.length);
    std::vector<float> x(T * B * 2, 0), y(B);  // [T, B, 2]: value, marker
    for (std::size_t b = 0; b < B; ++b) {
      Stream random(seed, streams[b]);
      const auto [first, second] = marked(o_.markers, o_.length, random);
      for (std::size_t t = 0; t < T; ++t) {
        const auto value = static_cast<float>(random.word() >> 8) * 0x1p-24F;  // in [0, 1)
        const bool mark = static_cast<std::int64_t>(t) == first || static_cast<std::int64_t>(t) == second;
        x[(t * B + b) * 2] = value;
        x[(t * B + b) * 2 + 1] = mark ? 1 : 0;
        if (mark) y[b] += value;
      }
    }
    const auto rows = static_cast<std::int64_t>(B);
    return {Tensor::from<float>(x, {o_.length, rows, 2}), Tensor::from<float>(y, {rows, 1})};
  }

  bool trains_on_mean() const override { return true; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    return mse(outputs, cast(batch.y, outputs.dtype()));
  }

  /// The fraction of answers that are off by less than 0.04.
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    return mean(cast(abs(outputs - cast(batch.y, outputs.dtype())) < 0.04, DType::f64)).item();
  }

  /// The two marked steps.
  std::vector<double> marks(const Batch& batch) const override {
    const auto x = batch.x.values<float>();  // [T, B, 2]
    const auto B = static_cast<std::size_t>(batch.x.dim(1)), T = static_cast<std::size_t>(o_.length);
    std::vector<double> out;
    for (std::size_t t = 0; t < T; ++t)
      if (x[t * B * 2 + 1] > 0) out.push_back(static_cast<double>(t));
    return out;
  }

 private:
  AddingOptions o_;
};

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  AddingOptions o;
  return run_task(argc, argv,
                  {.name = "adding",
                   .description = "The adding problem: the sum of two marked numbers in a sequence.",
                   .batch = 50,
                   .steps = 20000,
                   .options =
                       [&](Options& options) {
                         options.add("length", o.length, "T: length of a sequence", "Task",
                                     Bounds{.low = 3, .high = most::time});
                         options.choice("markers", o.markers, {"halves", "scornn", "anywhere", "ornn", "nnrnn"},
                                        "positions of the two markers: halves as in SRNN, uRNN, JANET; scornn also as "
                                        "in ENRNN; anywhere as in Henaff, TCN",
                                        "Task");
                       },
                   .task = [&](const Setup& setup) { return std::make_unique<Adding>(o, setup); }});
}
