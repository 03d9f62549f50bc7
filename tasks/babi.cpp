// Questions on little stories, answered by three recurrent networks (GORU, section 5.4): one reads the story, one reads
// the question, and the third turns their outputs into the answer.
#include <algorithm>
#include <cmath>

#include "tasks/app/run.h"
#include "tasks/data/babi.h"
#include "tasks/data/data_error.h"
#include "tasks/data/vocabulary.h"
#include "tasks/training/trained_model.h"

namespace reel {
namespace {

struct BabiOptions {
  std::int64_t task = 1, valid = 0;
  std::string size = "10k", punctuation = "drop", join = "once";
};

/// The folder of the questions of this size. Throws DataError if only the other size has those of the task.
std::string folder_with(const std::string& data, const BabiOptions& o) {
  const auto file = [&](bool large) { return fmt::format("en-valid{}/qa{}_train.txt", large ? "-10k" : "", o.task); };
  const auto there = [&](bool large) {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::path(data) / "babi" / file(large), error);
  };
  const bool large = o.size == "10k";
  if (!there(large) && there(!large))
    throw DataError("babi", file(large), "not found in " + (std::filesystem::path(data) / "babi").string(),
                    fmt::format("Hint: --size {}", large ? "1k" : "10k"));
  return large ? "en-valid-10k" : "en-valid";
}

class BabiTask final : public Task {
 public:
  BabiTask(const BabiOptions& o, const Setup& setup)
      : number_(o.task), babi_(read_babi(setup.data, folder_with(setup.data, o), o.task, o.punctuation == "keep")) {
    if (o.valid > 0) resplit(o.valid);
    if (setup.init_from.empty()) return;
    for (const std::string& change : changed_names(run_of_parameters(setup.init_from), names()))
      notes_.push_back(fmt::format("--init-from {}: {}; parameters go by place, not by word", setup.init_from, change));
  }

  /// Words and answers in the order of their numbers.
  Vocabulary names() const { return {{"words", babi_.words}, {"answers", babi_.answers}}; }
  /// What --init-from does not see.
  const std::vector<std::string>& notes() const { return notes_; }

  std::string name() const override { return "babi"; }
  std::string title() const override { return fmt::format("bAbI, task {}", number_); }
  ModelShape shape() const override {
    return {.vocabulary = std::ssize(babi_.words), .outputs = std::ssize(babi_.answers), .every_step = false};
  }
  /// The entropy of the answers in the training set.
  double baseline() const override {
    std::vector<double> count(babi_.answers.size(), 0);
    for (const BabiQuestion& q : babi_.parts[0]) ++count[static_cast<std::size_t>(q.answer)];
    double entropy = 0;
    const auto total = static_cast<double>(babi_.parts[0].size());
    for (const double n : count)
      if (n > 0) entropy -= n / total * std::log(n / total);
    return entropy;
  }
  Parts parts() const override {
    return {std::ssize(babi_.parts[0]), std::ssize(babi_.parts[1]), std::ssize(babi_.parts[2])};
  }

  /// x: the stories [T, B]. more: the questions [Tq, B], then the index [B] of each story's last word among T B rows,
  /// and the index [B] of each question's last word among Tq B rows.
  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    std::vector<const std::vector<std::int32_t>*> stories, questions;
    std::vector<std::int32_t> answers;
    for (const std::uint64_t s : streams) {
      const BabiQuestion& q = find(s);
      stories.push_back(&q.story);
      questions.push_back(&q.words);
      answers.push_back(q.answer);
    }
    const auto [x, x_last] = columns(stories);
    const auto [question, question_last] = columns(questions);
    return {x, Tensor::from<std::int32_t>(answers, {std::ssize(answers)}), {}, {question, x_last, question_last}};
  }

  bool trains_on_mean() const override { return true; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override { return cross_entropy(outputs, batch.y); }
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    return mean(cast(equal(argmax(outputs), batch.y), DType::f64)).item();
  }

 private:
  /// Moves the last questions of the training set in front of the validation set, which has `wanted` then, or the other
  /// way round.
  void resplit(std::int64_t wanted) {
    auto &train = babi_.parts[0], &valid = babi_.parts[1];
    if (wanted >= std::ssize(train) + std::ssize(valid))
      throw SettingError("valid", fmt::format("fewer than the {} questions of training and validation expected, got {}",
                                              train.size() + valid.size(), wanted));
    train.insert(train.end(), valid.begin(), valid.end());
    valid.assign(train.end() - wanted, train.end());
    train.resize(train.size() - static_cast<std::size_t>(wanted));
  }

  const BabiQuestion& find(std::uint64_t stream) const {
    std::size_t i = stream;
    for (const auto& part : babi_.parts) {
      if (i < part.size()) return part[i];
      i -= part.size();
    }
    throw Error("babi", fmt::format("there is no question {}", stream));
  }

  /// Texts as columns [T, B], padded with word 0, and the indices [B] of their last words.
  static std::pair<Tensor, Tensor> columns(const std::vector<const std::vector<std::int32_t>*>& texts) {
    const std::size_t B = texts.size();
    std::size_t T = 0;
    for (const auto* text : texts) T = std::max(T, text->size());
    std::vector<std::int32_t> words(T * B, 0), last(B);
    for (std::size_t b = 0; b < B; ++b) {
      for (std::size_t t = 0; t < texts[b]->size(); ++t) words[t * B + b] = (*texts[b])[t];
      last[b] = static_cast<std::int32_t>((texts[b]->size() - 1) * B + b);
    }
    const auto rows = static_cast<std::int64_t>(B);
    return {Tensor::from<std::int32_t>(words, {static_cast<std::int64_t>(T), rows}),
            Tensor::from<std::int32_t>(last, {rows})};
  }

  std::int64_t number_;
  Babi babi_;
  std::vector<std::string> notes_;
};

/// Story, question and answer networks of the same kind and size. The answer network runs a single step on the last
/// outputs of the other two, or, with `over_time`, reads the story network's outputs in order, each next to the
/// question's output.
class ThreeNetworks final : public Model {
 public:
  ThreeNetworks(const ModelShape& shape, const ModelOptions& o, bool over_time, Init init)
      : vocabulary_(shape.vocabulary),
        checkpoint_every_(o.checkpoint_every),
        dtype_(init.dtype),
        one_hot_(o.input == "one-hot"),
        over_time_(over_time) {
    const std::vector<LayerOptions> layers = layers_of(o);
    const auto require = [](bool held, const char* name, const char* rule, const auto& got, const char* usual) {
      if (!held) throw SettingError(name, fmt::format("the three networks {}, got {}", rule, got), {name, usual});
    };
    const auto refuse = [](bool flag, const char* name, const char* rule) {
      if (flag) throw SettingError(name, fmt::format("the three networks {}", rule), {name, "false"});
    };
    if (!o.stack.empty())
      throw SettingError("layers",
                         fmt::format("the three networks have one layer each, got {}. Hint: one --cell and one "
                                     "--hidden for all of them",
                                     layers.size()));
    require(layers.size() == 1, "layers", "have one layer each", layers.size(), "1");
    refuse(o.bidirectional, "bidirectional", "read forward only");
    refuse(o.layer_norm, "layer-norm", "have one layer each");
    refuse(o.residual, "residual", "have one layer each");
    refuse(o.variational, "variational-dropout", "have one layer each, and dropout is between layers");
    require(o.dropout == 0, "dropout", "have one layer each, and dropout is between layers", o.dropout, "0");
    require(o.zoneout == 0, "zoneout", "have no zoneout", o.zoneout, "0");
    const CellType& type = cell_type(o.cell);
    std::int64_t width = vocabulary_;
    if (!one_hot_) {
      const Settings settings(o.cell, type.settings, o.settings);
      width = o.embedding > 0 ? o.embedding : type.embedding ? type.embedding(settings) : o.hidden;
      table_ = add({"embedding", init.normal({vocabulary_, width}, 1), "embedding"});
    }
    story_ = &add_cell("story.", width, layers[0], init);
    question_ = &add_cell("question.", width, layers[0], init);
    answer_ = &add_cell("answer.", story_->outputs() + question_->outputs(), layers[0], init);
    std::tie(V_, c_) = add_head("head", shape.outputs, answer_->outputs(), o.head_init, init);
  }

  Tensor forward(const Batch& batch, const std::optional<StepContext>&, Tensors*) const override {
    const Tensor &words = batch.more[0], &story_last = batch.more[1], &question_last = batch.more[2];
    const Tensor story = outputs(*story_, fed(batch.x));
    const Tensor question = pick_rows(outputs(*question_, fed(words)), question_last);  // [B, n]
    if (!over_time_) {
      const Tensor both = concat({pick_rows(story, story_last), question}, -1);
      return linear(at(outputs(*answer_, unsqueeze(both, 0)), 0), V_, c_);
    }
    const Tensor beside = expand(unsqueeze(question, 0), {story.dim(0), story.dim(1), question.dim(1)});
    return linear(pick_rows(outputs(*answer_, concat({story, beside}, -1)), story_last), V_, c_);
  }

 private:
  Tensor fed(const Tensor& words) const {
    return one_hot_ ? one_hot(words, vocabulary_, dtype_) : embedding(words, table_);
  }
  Tensor outputs(const Cell& cell, const Tensor& xs) const {
    return scan(cell, cell.initial(xs.dim(1)), xs, {.checkpoint_every = checkpoint_every_}).hs;
  }
  /// Gathers rows of [T, B, n] by their indices among T B.
  static Tensor pick_rows(const Tensor& hs, const Tensor& places) {
    return embedding(places, reshape(hs, {-1, hs.dim(2)}));
  }

  std::int64_t vocabulary_, checkpoint_every_;
  DType dtype_;
  bool one_hot_, over_time_;
  Tensor table_, V_, c_;
  const Cell *story_ = nullptr, *question_ = nullptr, *answer_ = nullptr;
};

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  BabiOptions o;
  const auto add = [&](Options& options) {
    options.add("task", o.task, "task number, 1 to 20", "Task", Bounds{.low = 1, .high = 20});
    options.add("valid", o.valid,
                "number of validation questions; if the files have fewer, the rest is taken from the training set; 0: "
                "those of the files",
                "Task", Bounds{.low = 0, .high = 1e6});
    options.choice("size", o.size, {"10k", "1k"}, "size of the data set, in questions", "Task");
    options.choice("punctuation", o.punctuation, {"drop", "keep"},
                   "drop full stops and question marks, or keep them as words", "Task");
    options.choice("join", o.join, {"once", "over-time"},
                   "input of the third network: the last outputs of both others in one step, or the story's outputs at "
                   "all steps, each with the question's last output (the paper can be read either way)",
                   "Task");
  };
  return run_task(argc, argv,
                  {.name = "babi",
                   .description = "bAbI: question answering on short stories, by three recurrent networks.",
                   .batch = 32,
                   .steps = 10000,
                   .source = Source::files,
                   .options = add,
                   .task = [&](const Setup& setup) { return std::make_unique<BabiTask>(o, setup); },
                   .model =
                       [&](const Task& task, const ModelOptions& options, Init init) {
                         return std::make_unique<ThreeNetworks>(task.shape(), options, o.join == "over-time", init);
                       },
                   .begun =
                       [](const Task& task, const RunFolder& folder, bool resumed) {
                         keep_vocabulary(folder.path(), static_cast<const BabiTask&>(task).names(), resumed);
                         return std::string();
                       },
                   .notes = [](const Task& task) { return static_cast<const BabiTask&>(task).notes(); }});
}
