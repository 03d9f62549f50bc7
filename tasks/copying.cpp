// The copying memory problem: symbols at the start, a long blank, a delimiter, then the symbols again. The delay is
// fixed, or not known beforehand.
#include <cmath>

#include "tasks/app/run.h"

namespace reel {
namespace {

struct CopyingOptions {
  std::int64_t delay = 200, symbols = 8, length = 10, classes = 0;
  std::string layout = "standard", vary = "none", recall = "same";
  std::int64_t reset_every = 1;
};

/// Positions of one layout, 0-based, and the ids of its special symbols. T = delay, S = length.
struct Layout {
  std::int64_t total, delimiter, repeats, recall;  // step count; first delimiter, delimiter count; first recall step
  std::int32_t blank, mark, first_data;
};

Layout layout(const CopyingOptions& o) {
  const std::int64_t T = o.delay, S = o.length;
  const auto K = static_cast<std::int32_t>(o.symbols);
  if (o.layout == "nnrnn") return {T + 2 * S, T + S - 1, 1, T + S, K, K + 1, 0};
  if (o.layout == "exprnn") return {T + 2 * S, T + S, 1, T + S, 0, K + 1, 1};
  if (o.layout == "janet") return {T + 2 * S + 1, T + S, 1, T + S + 1, 0, K + 1, 1};
  if (o.layout == "tcn") return {T + 2 * S, T + S - 1, S + 1, T + S, 0, K + 1, 1};
  return {T + 2 * S, T + S - 1, 1, T + S, 0, K + 1, 1};
}

class Copying final : public Task {
 public:
  Copying(const CopyingOptions& o, const Setup& setup) : o_(o), layout_(layout(o)) {
    require_batch("copying", layout_.total, setup.examples.batch, 16);
    const std::int64_t least = o.symbols + 1;
    if (o_.classes == 0) o_.classes = o.symbols + 2;  // as in the SRNN code: one class per input symbol
    if (o_.classes < least)
      throw SettingError("classes", fmt::format("{} symbols and the blank need {} classes or more, got {}", o.symbols,
                                                least, o_.classes));
    if (o_.vary != "none" && o_.layout != "standard")
      throw SettingError("vary", fmt::format("{} is of --layout standard, got {}", o_.vary, o_.layout));
    if (o_.vary == "place" && o_.delay < 2)
      throw SettingError("vary", fmt::format("place needs --delay 2 or more, got {}", o_.delay));
    if (o_.reset_every > 1 && setup.examples.examples > 0)
      throw SettingError("reset-every", "states are carried between fresh sequences only: --examples 0 expected");
    batch_ = setup.examples.batch;
    if (o_.vary == "batch" && setup.examples.parts > 1)
      throw SettingError("vary", "batch draws one delay for a whole batch, which --accumulate would cut");
    if (o_.vary == "batch" && setup.examples.examples > 0)
      throw SettingError("vary",
                         "batch draws one delay for a whole batch, so an example has none of its own: "
                         "--examples 0 expected");
  }
  std::string name() const override { return "copying"; }
  std::string title() const override { return fmt::format("copying, T = {}", o_.delay); }
  ModelShape shape() const override { return {.vocabulary = o_.symbols + 2, .outputs = o_.classes}; }
  /// The loss of predicting blanks correctly and guessing the symbols: S ln K / total steps, averaged over all possible
  /// delays.
  double baseline() const override {
    double inverse = 1 / static_cast<double>(layout_.total);
    if (o_.vary == "batch") {
      inverse = 0;
      for (std::int64_t T = 1; T <= o_.delay; ++T) inverse += 1 / static_cast<double>((T + 2 * o_.length) * o_.delay);
    }
    return static_cast<double>(o_.length) * std::log(static_cast<double>(o_.symbols)) * inverse;
  }

  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    Layout at = layout_;
    if (o_.vary == "batch") {  // one delay for the whole batch, drawn from its first stream
      Stream random(seed, first_delay + streams.at(0));
      CopyingOptions shorter = o_;
      shorter.delay = 1 + random.below(o_.delay);
      at = layout(shorter);
    }
    const auto B = streams.size(), T = static_cast<std::size_t>(at.total);
    std::vector<std::int32_t> x(T * B, at.blank), y(T * B, at.blank);  // [T, B]
    for (std::size_t b = 0; b < B; ++b) {
      Stream random(seed, streams[b]);
      const auto put = [&](std::vector<std::int32_t>& v, std::int64_t t, std::int32_t symbol) {
        v[static_cast<std::size_t>(t) * B + b] = symbol;
      };
      if (o_.vary == "place") {
        at.delimiter = o_.length + 1 + random.below(o_.delay - 1);
        at.recall = at.delimiter + 1;
      }
      for (std::int64_t k = 0; k < at.repeats; ++k) put(x, at.delimiter + k, at.mark);
      for (std::int64_t k = 0; k < o_.length; ++k) {
        const auto symbol = at.first_data + static_cast<std::int32_t>(random.below(o_.symbols));
        put(x, k, symbol);
        put(y, at.recall + k,
            o_.recall == "same" ? symbol : at.first_data + static_cast<std::int32_t>(random.below(o_.symbols)));
      }
    }
    const Shape shape{at.total, static_cast<std::int64_t>(B)};
    Batch batch{Tensor::from<std::int32_t>(x, shape), Tensor::from<std::int32_t>(y, shape)};
    // in a mean over batches of different lengths, each sequence counts the same
    if (o_.vary == "batch") batch.weight = Tensor::full(shape, 1 / static_cast<double>(at.total), DType::f64);
    return batch;
  }

  /// States are carried from one full batch to the next, but for every --reset-every-th, in training and in validation.
  bool continues(const std::vector<std::uint64_t>& streams) const override {
    const auto B = static_cast<std::uint64_t>(batch_);
    const std::uint64_t before = streams.front() % first_valid;  // sequences
    return streams.size() == B && before / B % static_cast<std::uint64_t>(o_.reset_every) != 0;
  }

  bool trains_on_mean() const override { return true; }
  /// Cross entropy over all steps, equally weighted.
  Tensor loss(const Tensor& outputs, const Batch& batch) const override { return cross_entropy(outputs, batch.y); }

  /// The fraction of recalled symbols that are correct.
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    const Tensor recall = cast(not_equal(batch.y, static_cast<double>(layout_.blank)), DType::f64);
    return (sum(cast(equal(argmax(outputs), batch.y), DType::f64) * recall) / sum(recall)).item();
  }

  /// After the symbols, and before the recall.
  std::vector<double> marks(const Batch& batch) const override {
    const auto y = batch.y.values<std::int32_t>();  // [T, B]
    const auto B = static_cast<std::size_t>(batch.y.dim(1));
    std::size_t recall = 0;
    while ((recall + 1) * B < y.size() && y[recall * B] == layout_.blank) ++recall;
    return {static_cast<double>(o_.length) - 0.5, static_cast<double>(recall) - 0.5};
  }

 private:
  static constexpr std::uint64_t first_valid = std::uint64_t{1} << 60;  // of Examples::valid() for fresh sequences
  static constexpr std::uint64_t first_delay = std::uint64_t{6} << 60;  // far from the streams of examples

  CopyingOptions o_;
  Layout layout_;
  std::int64_t batch_;
};

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  CopyingOptions o;
  return run_task(
      argc, argv,
      {.name = "copying",
       .description = "The copying memory problem: recall symbols after a delay.",
       .options =
           [&](Options& options) {
             options.add("delay", o.delay, "T: steps between the symbols and their recall", "Task",
                         Bounds{.low = 1, .high = most::time});
             options.add("symbols", o.symbols, "K: number of different symbols", "Task",
                         Bounds{.low = 1, .high = most::units});
             options.add("length", o.length, "S: number of symbols to remember", "Task",
                         Bounds{.low = 1, .high = most::time});
             options.add("classes", o.classes, "output classes; 0: K + 2 as in the SRNN code; other papers have K + 1",
                         "Task", Bounds{.low = 0, .high = most::units + 2});
             options.choice("layout", o.layout, {"standard", "nnrnn", "exprnn", "janet", "tcn"},
                            "paper whose positions and symbol ids are used; standard: SRNN, ENRNN, NRU, GORU, uRNN",
                            "Task");
             options.choice("vary", o.vary, {"none", "place", "batch"},
                            "place: delimiter and recall at a random place in the blanks (Henaff, oRNN); batch: a "
                            "random delay of 1 to T for each batch (NRU)",
                            "Task");
             options.choice("recall", o.recall, {"same", "random"},
                            "random: the symbols to recall are independent of the input, so that nothing can be learnt "
                            "(NRU's stability test)",
                            "Task");
             options.add("reset-every", o.reset_every,
                         "reset the state to 0 every N batches; above 1 it is carried over in between, and the network "
                         "must clear it (NRU's forgetting test)",
                         "Task", Bounds{.low = 1, .high = 1e6});
           },
       .task = [&](const Setup& setup) { return std::make_unique<Copying>(o, setup); }});
}
