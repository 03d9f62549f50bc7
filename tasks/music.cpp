// Polyphonic music: predicts which of 88 keys sound in the next frame of a tune from all frames before it. The loss is
// the negative log likelihood of a frame, summed over its keys, in nats.
#include <algorithm>
#include <array>
#include <cmath>

#include "tasks/app/run.h"
#include "tasks/data/data_error.h"
#include "tasks/data/piano_roll.h"

namespace reel {
namespace {

struct MusicOptions {
  std::string set = "nottingham", train_on = "sum";
};

class Music final : public Task {
 public:
  Music(const MusicOptions& o, const Setup& setup) : set_(o.set), sum_(o.train_on == "sum") {
    const std::string file = o.set == "jsb" ? "JSB_Chorales.mat" : "Nottingham.mat";
    Tunes all = read_piano_rolls("music", data_file(setup.data, "music", file));
    parts_ = {std::ssize(all.train), std::ssize(all.valid), std::ssize(all.test)};
    baseline_ = independent_keys(all);
    for (auto* part : {&all.train, &all.valid, &all.test})
      std::move(part->begin(), part->end(), std::back_inserter(tunes_));
  }

  std::string name() const override { return "music"; }
  std::string title() const override { return fmt::format("music, {}", set_); }
  ModelShape shape() const override { return {.inputs = piano_keys, .outputs = piano_keys}; }
  /// The loss on the validation tunes of predicting each key independently, by its frequency in the training tunes.
  double baseline() const override { return baseline_; }
  Parts parts() const override { return parts_; }
  bool forecasts() const override { return true; }

  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size(), keys = static_cast<std::size_t>(piano_keys);
    std::size_t T = 0;  // frames to predict: all but the first
    for (const std::uint64_t s : streams) T = std::max(T, tunes_.at(s).size() / keys - 1);
    std::vector<float> x(T * B * keys, 0), y(T * B * keys, 0);  // [T, B, 88]
    std::vector<float> weight(T * B, 0);                        // [T, B]
    for (std::size_t b = 0; b < B; ++b) {
      const Tune& tune = tunes_[streams[b]];
      for (std::size_t t = 0; t + 1 < tune.size() / keys; ++t) {
        for (std::size_t k = 0; k < keys; ++k) {
          x[(t * B + b) * keys + k] = tune[t * keys + k];
          y[(t * B + b) * keys + k] = tune[(t + 1) * keys + k];
        }
        weight[t * B + b] = 1;
      }
    }
    const auto rows = static_cast<std::int64_t>(B), steps = static_cast<std::int64_t>(T);
    return {Tensor::from<float>(x, {steps, rows, piano_keys}), Tensor::from<float>(y, {steps, rows, piano_keys}),
            Tensor::from<float>(weight, {steps, rows})};
  }

  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    const Tensor keys =
        binary_cross_entropy_with_logits(outputs, cast(batch.y, outputs.dtype()), {.reduction = LossReduction::none});
    const Tensor weight = cast(batch.weight, outputs.dtype());
    return sum(sum(keys, {-1}) * weight) / sum(weight);
  }

  /// The published code trains on the sum over a tune, so longer tunes count more.
  double scale(const Batch& batch) const override { return sum_ ? sum(cast(batch.weight, DType::f64)).item() : 1; }
  bool trains_on_mean() const override { return !sum_; }

  std::vector<Score> scores(const Tensor& outputs, const Batch& batch) const override {
    const double frames = sum(cast(batch.weight, DType::f64)).item();
    return {{"nll", frames * loss(outputs, batch).item(), frames}};
  }

 private:
  static double independent_keys(const Tunes& all) {
    const auto keys = static_cast<std::size_t>(piano_keys);
    const auto count = [&](const std::vector<Tune>& tunes) {  // frames with each key, then all predicted frames
      std::array<double, 89> n{};
      for (const Tune& tune : tunes) {
        for (std::size_t i = keys; i < tune.size(); ++i) n[i % keys] += tune[i];
        n.back() += static_cast<double>(tune.size() / keys - 1);
      }
      return n;
    };
    const auto train = count(all.train), valid = count(all.valid);
    double nll = 0;
    for (std::size_t k = 0; k < keys; ++k) {
      // a key that never sounds counts as half a frame, so that no probability is 0
      const double p = std::clamp(train[k], 0.5, train.back() - 0.5) / train.back();
      nll -= valid[k] * std::log(p) + (valid.back() - valid[k]) * std::log1p(-p);
    }
    return nll / valid.back();
  }

  std::string set_;
  bool sum_;
  std::vector<Tune> tunes_;
  Parts parts_;
  double baseline_ = 0;
};

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  MusicOptions o;
  const auto add = [&](Options& options) {
    options.choice("set", o.set, {"nottingham", "jsb"}, "data set: folk tunes, or chorales by Bach", "Task");
    options.choice("train-on", o.train_on, {"sum", "mean"},
                   "training loss: sum over the frames of a tune, as in the published code, or mean", "Task");
  };
  return run_task(argc, argv,
                  {.name = "music",
                   .description = "Polyphonic music: predict the notes of the next frame of a tune.",
                   .batch = 1,
                   .steps = 35000,
                   .source = Source::files,
                   .options = add,
                   .task = [&](const Setup& setup) { return std::make_unique<Music>(o, setup); }});
}
