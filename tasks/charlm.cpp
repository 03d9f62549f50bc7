// A character language model: predicts the next character of a text, and generates text. The text is cut into as many
// tracks as a batch has rows. A batch is one window of all tracks. States carry over from window to window, while
// gradients stay within one (truncated backpropagation).
#include <algorithm>
#include <cmath>
#include <map>

#include "tasks/app/run.h"
#include "tasks/data/data_error.h"
#include "tasks/data/text.h"
#include "tasks/data/vocabulary.h"
#include "tasks/io/files.h"
#include "tasks/training/trained_model.h"

namespace reel {
namespace {

struct CharOptions {
  std::string text, lines = "keep";
  std::int64_t unroll = 50, sample = 0;
  double temperature = 1;
  std::uint64_t sample_seed = 1;
};

/// A part of the text as tracks [tracks, length]; the remainder is dropped.
struct Tracks {
  std::vector<std::int32_t> symbols;
  std::int64_t length = 0, windows = 0;
};

/// True if the parameters to start from know a byte order mark, as older versions took it for a character.
bool keeps_mark(const Setup& setup, const std::string& resumed) {
  if (resumed.empty() && setup.init_from.empty()) return false;
  const std::string run = resumed.empty() ? run_of_parameters(setup.init_from) : resumed;
  std::error_code error;
  return std::filesystem::exists(run + "/checkpoint.safetensors", error) &&
         run_has_character(run, utf8(std::u32string(1, byte_order_mark))).value_or(true);
}

class CharModel final : public Task {
 public:
  /// `resumed`: the folder of the run that goes on; empty: a new one.
  CharModel(const CharOptions& o, const Setup& setup, const std::string& resumed = "")
      : unroll_(o.unroll), rows_(setup.examples.batch) {
    const Corpus corpus =
        o.text.empty() ? read_ptb(setup.data, o.lines == "strip") : read_text(o.text, keeps_mark(setup, resumed));
    name_ = o.text.empty() ? "ptb" : "text";
    std::map<char32_t, std::int32_t> ids;
    for (const auto* part : {&corpus.train, &corpus.valid, &corpus.test})
      for (const char32_t c : *part) ids[c] = 0;
    for (auto& [c, id] : ids) {
      id = static_cast<std::int32_t>(vocabulary_.size());
      vocabulary_ += c;
    }
    for (const auto& [part, text] :
         {std::pair{"train on", &corpus.train}, {"validate on", &corpus.valid}, {"test", &corpus.test}}) {
      if (std::ssize(*text) < 2 * rows_)
        throw DataError(name_, o.text.empty() ? "ptb.*.txt" : o.text,
                        fmt::format("{} character{} to {} {} too few for {} tracks (--batch)", text->size(),
                                    text->size() == 1 ? "" : "s", part, text->size() == 1 ? "is" : "are", rows_),
                        !o.text.empty()    ? "Hint: a longer text, or a smaller --batch"
                        : text->size() < 2 ? data_help
                                           : "Hint: a smaller --batch");
      Tracks& tracks = parts_.emplace_back();
      tracks.length = std::ssize(*text) / rows_;
      tracks.windows = (tracks.length - 2) / unroll_ + 1;
      for (const char32_t c : text->substr(0, static_cast<std::size_t>(tracks.length * rows_)))
        tracks.symbols.push_back(ids[c]);
    }
    for (const auto& [option, n] :
         {std::pair{"examples", setup.examples.examples}, {"valid-size", setup.examples.valid_size}})
      if (n % rows_ != 0)
        throw SettingError(
            option,
            fmt::format("windows are taken from all tracks at once: {} is no multiple of --batch {}", n, rows_));
    set_baseline();
    if (setup.init_from.empty()) return;
    for (const std::string& change : changed_names(run_of_parameters(setup.init_from), names()))
      notes_.push_back(
          fmt::format("--init-from {}: {}; parameters go by place, not by character", setup.init_from, change));
  }

  /// The characters in the order of their symbols.
  Vocabulary names() const {
    std::vector<std::string> characters;
    for (const char32_t c : vocabulary_) characters.push_back(utf8(std::u32string(1, c)));
    return {{"characters", characters}};
  }
  /// What --init-from does not see.
  const std::vector<std::string>& notes() const { return notes_; }
  std::string name() const override { return "charlm"; }
  std::string title() const override {
    return fmt::format("characters of {}, {} different ones", name_, vocabulary_.size());
  }
  ModelShape shape() const override {
    const std::int64_t V = std::ssize(vocabulary_);
    return {.vocabulary = V, .outputs = V};
  }
  /// The entropy of single characters, in nats.
  double baseline() const override { return baseline_; }
  Parts parts() const override {
    return {rows_ * parts_[0].windows, rows_ * parts_[1].windows, rows_ * parts_[2].windows, true};
  }
  bool continues(const std::vector<std::uint64_t>& streams) const override { return find(streams).window > 0; }

  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    const auto [tracks, window] = find(streams);
    const std::int64_t first = window * unroll_, T = std::min(unroll_, tracks->length - 1 - first);
    std::vector<std::int32_t> x, y;  // [T, B]
    for (std::int64_t t = first; t < first + T; ++t) {
      for (const std::uint64_t stream : streams) {
        const std::int64_t track = static_cast<std::int64_t>(stream) % rows_;
        const auto at = static_cast<std::size_t>(track * tracks->length + t);
        x.push_back(tracks->symbols[at]);
        y.push_back(tracks->symbols[at + 1]);
      }
    }
    const Shape shape{T, std::ssize(streams)};
    return {Tensor::from<std::int32_t>(x, shape), Tensor::from<std::int32_t>(y, shape)};
  }

  bool trains_on_mean() const override { return true; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override { return cross_entropy(outputs, batch.y); }
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    return mean(cast(equal(argmax(outputs), batch.y), DType::f64)).item();
  }
  /// Bits per character.
  std::vector<Score> scores(const Tensor& outputs, const Batch& batch) const override {
    const auto n = static_cast<double>(batch.y.numel());
    return {{"bpc", n * loss(outputs, batch).item() / std::numbers::ln2, n}};
  }

  /// Text generated by the model, starting from the zero state and a newline. The probabilities are softmax(logits /
  /// temperature); temperature 0 always takes the most likely character. A model with a layer that has no state reads
  /// the last characters again for each new one: as many as a window has in training.
  std::string sample(const Model& model, const CharOptions& o) const {
    Stream random(o.sample_seed, std::uint64_t{5} << 60);
    const std::size_t start = vocabulary_.find(U'\n'),
                      window = model.recurrent() ? 1 : static_cast<std::size_t>(unroll_);
    std::vector<std::int32_t> read{static_cast<std::int32_t>(start == std::u32string::npos ? 0 : start)};
    Tensors carry;
    std::u32string text;
    while (std::ssize(text) < o.sample) {
      const Tensor x = Tensor::from<std::int32_t>(read, {std::ssize(read), 1}, model.device());
      const Tensor outputs = model(x, std::nullopt, model.recurrent() ? &carry : nullptr);  // [T, 1, V]
      const Tensor logits = cast(at(outputs, outputs.dim(0) - 1), DType::f64);
      std::int32_t symbol = 0;
      if (o.temperature > 0) {
        const auto p = softmax(logits / o.temperature).values<double>();
        double left = random.uniform();
        while (symbol + 1 < std::ssize(p) && (left -= p[static_cast<std::size_t>(symbol)]) >= 0) ++symbol;
      } else {
        symbol = argmax(logits).values<std::int32_t>()[0];
      }
      text += vocabulary_[static_cast<std::size_t>(symbol)];
      if (read.size() == window) read.erase(read.begin());
      read.push_back(symbol);
    }
    return utf8(text);
  }

 private:
  struct Place {
    const Tracks* tracks;
    std::int64_t window;
  };
  /// Streams enumerate the parts window by window, and within a window track by track.
  Place find(const std::vector<std::uint64_t>& streams) const {
    std::int64_t window = static_cast<std::int64_t>(streams.at(0)) / rows_;
    for (const Tracks& tracks : parts_) {
      if (window < tracks.windows) return {&tracks, window};
      window -= tracks.windows;
    }
    throw Error("charlm", fmt::format("there is no example {}", streams[0]));
  }

  void set_baseline() {
    std::vector<double> count(vocabulary_.size(), 0);
    for (const std::int32_t s : parts_[0].symbols) ++count[static_cast<std::size_t>(s)];
    const auto total = static_cast<double>(parts_[0].symbols.size());
    for (const double n : count)
      if (n > 0) baseline_ -= n / total * std::log(n / total);
  }

  std::string name_;
  std::int64_t unroll_, rows_;
  std::u32string vocabulary_;
  std::vector<Tracks> parts_;
  double baseline_ = 0;
  std::vector<std::string> notes_;
};

void write_sample(const Task& task, const Model& model, const RunFolder& folder, const CharOptions& o) {
  if (o.sample == 0) return;
  const std::string text = static_cast<const CharModel&>(task).sample(model, o);
  write_atomically(folder.file("sample.txt"), text);
  print_out("{}\n", text);
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  CharOptions o;
  const Options* given = nullptr;
  const auto add = [&](Options& options) {
    given = &options;
    options.add("text", o.text,
                "any UTF-8 file instead of the Penn Treebank; its last tenth is the validation and test set", "Task");
    options.choice("lines", o.lines, {"keep", "strip"},
                   "Penn Treebank: keep the spaces at both ends of lines (ENRNN, GORU), or strip them (NRU)", "Task");
    options.add("unroll", o.unroll, "steps of truncated backpropagation through time", "Task",
                Bounds{.low = 1, .high = most::time});
    options.add("sample", o.sample, "sample N characters at the end; with --resume also from a finished run", "Text",
                Bounds{.low = 0, .high = 1e8});
    options.add("temperature", o.temperature,
                "sampling temperature: below 1 safer, above 1 more random; 0: always the most likely character", "Text",
                Bounds{.low = 0});
    options.add("sample-seed", o.sample_seed, "random seed of the sample", "Text");
  };
  return run_task(argc, argv,
                  {.name = "charlm",
                   .description = "Character-level language model of the Penn Treebank, or of any text.",
                   .batch = 32,
                   .steps = 64000,
                   .source = Source::files,
                   .options = add,
                   .task = [&](const Setup& setup) { return std::make_unique<CharModel>(o, setup, given->resume()); },
                   .begun =
                       [](const Task& task, const RunFolder& folder, bool resumed) {
                         keep_vocabulary(folder.path(), static_cast<const CharModel&>(task).names(), resumed);
                         return std::string();
                       },
                   .notes = [](const Task& task) { return static_cast<const CharModel&>(task).notes(); },
                   .done = [&](const Task& task, const Model& model,
                               const RunFolder& folder) { write_sample(task, model, folder, o); },
                   .with_resume = {"text", "sample", "temperature", "sample-seed"},
                   .idle = [&]() -> std::vector<Idle> {
                     return {{"temperature", o.sample == 0, "--sample is 0"},
                             {"sample-seed", o.sample == 0, "--sample is 0"},
                             {"sample-seed", o.sample > 0 && o.temperature == 0, "--temperature is 0"},
                             {"lines", !o.text.empty(), "it is for the Penn Treebank, and --text is given"},
                             {"data", !o.text.empty(), "--text is given"}};
                   }});
}
