// The denoising problem: symbols are scattered in a long stretch of noise, which a delimiter ends; then the symbols
// must be repeated in order. The model must ignore the noise, so a memory without gates fills up.
#include <algorithm>
#include <cmath>

#include "tasks/app/run.h"

namespace reel {
namespace {

struct DenoisingOptions {
  std::int64_t delay = 200, symbols = 0, length = 10;
  std::string layout = "clean", loss = "all";
};

/// Steps of one layout, 0-based. T = delay, S = length.
struct Layout {
  std::int64_t places, delimiter, total;  // symbols lie at steps 0..places-1; the last S steps are the recall
  std::int64_t symbols;
  bool overwrite;  // steps are drawn with replacement; of two symbols at one step the later one wins
  bool vectors;    // inputs are one-hot vectors without a component for the delimiter
};

Layout layout(const DenoisingOptions& o) {
  const std::int64_t T = o.delay, S = o.length;
  const auto symbols = [&](std::int64_t fallback) { return o.symbols > 0 ? o.symbols : fallback; };
  if (o.layout == "nru") return {T, T, T + 1 + S, symbols(8), false, false};
  if (o.layout == "goru") return {T + S - 1, T + S - 1, T + 2 * S, symbols(9), true, true};
  return {T + S - 1, T + S - 1, T + 2 * S, symbols(8), false, false};
}

class Denoising final : public Task {
 public:
  Denoising(const DenoisingOptions& o, const Setup& setup)
      : S(o.length), layout_(layout(o)), recall_only_(o.loss == "recall"), title_(fmt::format("T = {}", o.delay)) {
    require_batch("denoising", layout_.total, setup.examples.batch,
                  16 + (layout_.vectors ? 8 * static_cast<double>(layout_.symbols + 2) : 0));
    if (!layout_.overwrite && S > layout_.places)
      throw SettingError("length", fmt::format("{} symbols do not fit into {} steps", S, layout_.places));
  }
  std::string name() const override { return "denoising"; }
  std::string title() const override { return "denoising, " + title_; }
  /// Symbols are noise 0, data 1..K and the delimiter K + 1; classes are all but the delimiter.
  ModelShape shape() const override {
    const std::int64_t K = layout_.symbols;
    return {.vocabulary = layout_.vectors ? 0 : K + 2, .inputs = layout_.vectors ? K + 1 : 0, .outputs = K + 1};
  }
  /// The loss of predicting noise correctly and guessing the symbols.
  double baseline() const override {
    const double guess = std::log(static_cast<double>(layout_.symbols));
    return recall_only_ ? guess : static_cast<double>(S) * guess / static_cast<double>(layout_.total);
  }

  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size(), T = static_cast<std::size_t>(layout_.total);
    std::vector<std::int32_t> x(T * B), y(T * B);  // [T, B]
    for (std::size_t b = 0; b < B; ++b) {
      Stream random(seed, streams[b]);
      const auto at = [&](std::int64_t t) { return static_cast<std::size_t>(t) * B + b; };
      const std::vector<std::int64_t> places = draw_places(random);
      for (std::int64_t k = 0; k < S; ++k) {
        const auto symbol = 1 + static_cast<std::int32_t>(random.below(layout_.symbols));
        x[at(places[static_cast<std::size_t>(k)])] = symbol;
        y[at(recall() + k)] = symbol;
      }
      x[at(layout_.delimiter)] = static_cast<std::int32_t>(layout_.symbols) + 1;
    }
    const Shape shape{layout_.total, static_cast<std::int64_t>(B)};
    const Tensor symbols = Tensor::from<std::int32_t>(x, shape), targets = Tensor::from<std::int32_t>(y, shape);
    if (!layout_.vectors) return {symbols, targets};
    return {slice(one_hot(symbols, layout_.symbols + 2, DType::f32), -1, 0, layout_.symbols + 1), targets};
  }

  bool trains_on_mean() const override { return true; }
  /// Cross entropy over all steps, or over the recall only.
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    return recall_only_ ? cross_entropy(last(outputs), last(batch.y)) : cross_entropy(outputs, batch.y);
  }

  /// The fraction of recalled symbols that are correct.
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    return mean(cast(equal(argmax(last(outputs)), last(batch.y)), DType::f64)).item();
  }

  /// Before the recall.
  std::vector<double> marks(const Batch&) const override { return {static_cast<double>(recall()) - 0.5}; }

 private:
  std::int64_t recall() const { return layout_.total - S; }
  Tensor last(const Tensor& steps) const { return slice(steps, 0, recall(), layout_.total); }

  /// S steps in ascending order.
  std::vector<std::int64_t> draw_places(Stream& random) const {
    std::vector<std::int64_t> places;
    if (layout_.overwrite) {
      for (std::int64_t k = 0; k < S; ++k) places.push_back(random.below(layout_.places));
      std::sort(places.begin(), places.end());
      return places;
    }
    for (std::int64_t t = 0; std::ssize(places) < S; ++t) {  // selection sampling: every choice of S is equally likely
      if (random.below(layout_.places - t) < S - std::ssize(places)) places.push_back(t);
    }
    return places;
  }

  const std::int64_t S;
  Layout layout_;
  bool recall_only_;
  std::string title_;
};

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  DenoisingOptions o;
  return run_task(
      argc, argv,
      {.name = "denoising",
       .description = "The denoising problem: recall symbols that are scattered in noise.",
       .options =
           [&](Options& options) {
             options.add("delay", o.delay, "T: steps of noise", "Task", Bounds{.low = 1, .high = most::time});
             options.add("symbols", o.symbols, "K: number of different symbols; 0: as in the layout, 8 (goru: 9)",
                         "Task", Bounds{.low = 0, .high = most::units});
             options.add("length", o.length, "S: number of symbols to remember", "Task",
                         Bounds{.low = 1, .high = most::time});
             options.choice("layout", o.layout, {"clean", "goru", "nru"},
                            "clean: T + 2S steps, S different places; goru: as its generator: symbols may overwrite "
                            "each other, and the delimiter is encoded as zeros; nru: T + 1 + S steps",
                            "Task");
             options.choice("loss", o.loss, {"all", "recall"},
                            "mean over all steps (GORU), or over the recall steps (NRU)", "Task");
           },
       .task = [&](const Setup& setup) { return std::make_unique<Denoising>(o, setup); }});
}
