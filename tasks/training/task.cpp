#include "tasks/training/task.h"

#include <algorithm>
#include <numeric>
#include <typeinfo>

namespace reel {

namespace {
// Streams of one seed: training examples start at 0; validation examples follow, or are far above if there is no end to
// the training examples; orders of a fixed set are farther still.
constexpr std::uint64_t fresh_valid = std::uint64_t{1} << 60, first_order = std::uint64_t{2} << 60;

std::int64_t part(const char* setting, std::int64_t wanted, std::int64_t there) {
  if (there > 0 && wanted > there)
    throw SettingError(setting, fmt::format("at most the {} of the data set expected, got {}", there, wanted));
  return there > 0 && wanted == 0 ? there : wanted;
}

/// A weight for each entry of y, or for each of its rows.
bool weighs(Shape weight, const Shape& y) {
  while (weight.rank() > y.rank() && weight[weight.rank() - 1] == 1) weight = weight.erase(weight.rank() - 1);
  const std::optional<Shape> both = broadcast(weight, y);
  if (both && *both == y) return true;
  bool leads = weight.rank() < y.rank();
  for (int axis = 0; leads && axis < weight.rank(); ++axis) leads = weight[axis] == y[axis];
  return leads;
}
}  // namespace

void check_name(const std::string& what, const std::string& name) {
  const auto fits = [](unsigned char c) { return c >= ' ' && c != 0x7f && c != '/'; };
  if (!name.empty() && std::all_of(name.begin(), name.end(), fits)) return;
  throw Error(
      "task",
      fmt::format("{} is \"{}\": as a part of a run folder's name it has one character or more, and no /", what, name));
}

void check_task(const Task& task, bool own_model) {
  check_name("Task::name", task.name());
  const ModelShape shape = task.shape();
  if (!own_model && (shape.vocabulary < 0 || shape.inputs < 0 || (shape.vocabulary == 0 && shape.inputs == 0)))
    throw Error(task.name(), fmt::format("Task::shape gives inputs = {} and vocabulary = {}; one of them is 1 or more",
                                         shape.inputs, shape.vocabulary));
  if (!own_model && shape.outputs < 1)
    throw Error(task.name(), fmt::format("Task::shape gives outputs = {}; 1 or more are needed", shape.outputs));
  const Parts parts = task.parts();
  if (parts.train < 0 || parts.valid < 0 || parts.test < 0)
    throw Error(task.name(), fmt::format("Task::parts gives train = {}, valid = {}, test = {}; each is 0 or more",
                                         parts.train, parts.valid, parts.test));
}

void require_batch(const std::string& task, std::int64_t steps, std::int64_t batch, double bytes) {
  backend("cpu").require_memory(task, fmt::format("{} sequences of {} steps", batch, steps),
                                bytes * static_cast<double>(steps) * static_cast<double>(batch),
                                "a smaller --batch or shorter sequences");
}

void check_batch(const Task& task, const Model& model, const Batch& batch, std::int64_t sequences) {
  if (batch.weight.defined() && batch.y.defined() && !weighs(batch.weight.shape(), batch.y.shape()))
    throw Error(task.name(), fmt::format("Task::batch gives weight as {} beside y as {}; one for each entry of y is "
                                         "needed, or for each along its leading axes",
                                         batch.weight.spec().str(), batch.y.spec().str()));
  if (typeid(model) != typeid(Model)) return;
  const ModelShape shape = task.shape();
  const Tensor& x = batch.x;
  const bool floating = x.defined() && is_floating(x.dtype());
  const bool symbols = shape.vocabulary > 0 || (shape.levels.defined() && x.defined() && x.dtype() == DType::i32);
  const bool fits = x.defined() && x.rank() == (symbols ? 2 : 3) && x.dim(1) == sequences &&
                    (symbols ? !floating : x.dim(2) == shape.inputs);
  if (fits) return;
  const std::string needed = symbols ? fmt::format("i32 [T, {}], symbols below {}", sequences,
                                                   shape.vocabulary > 0 ? shape.vocabulary : shape.levels.dim(0))
                                     : fmt::format("numbers [T, {}, {}]", sequences, shape.inputs);
  throw Error(task.name(), fmt::format("Task::batch gives x as {}; by Task::shape, {} sequences are {}",
                                       x.defined() ? x.spec().str() : "an undefined tensor", sequences, needed));
}

Examples::Examples(const ExampleOptions& options, std::uint64_t seed, const Parts& parts)
    : options_(options), seed_(seed), test_(parts.test) {
  options_.shuffle = options.shuffle && !parts.ordered;
  options_.examples = part("examples", options.examples, parts.train);
  options_.valid_size = part("valid-size", options.valid_size, parts.valid);
  if (options.parts < 1 || options.parts > options.batch)
    throw SettingError("accumulate",
                       fmt::format("a batch of {} cannot be cut into {} parts", options.batch, options.parts));
  if (options_.valid_size < 1) throw SettingError("valid-size", "1 or more are needed, got 0");
  const double lists = static_cast<double>(options_.examples) +
                       static_cast<double>(options_.valid_size) * (1 + 8 / static_cast<double>(options_.batch));
  backend("cpu").require_memory("examples", "lists of them", 8 * lists, "smaller --examples or --valid-size");
  first_valid_ = parts.train > 0 ? static_cast<std::uint64_t>(parts.train) : fresh_valid;
  first_test_ = first_valid_ + static_cast<std::uint64_t>(parts.valid);
}

std::vector<std::uint64_t> Examples::train(std::int64_t step) {
  REEL_ASSERT(step >= 0 && step < std::numeric_limits<std::int64_t>::max() / options_.batch);
  std::vector<std::uint64_t> streams;
  for (std::int64_t b = 0; b < options_.batch; ++b) {
    const std::int64_t i = step * options_.batch + b;
    if (options_.examples == 0) {
      streams.push_back(static_cast<std::uint64_t>(i));
      continue;
    }
    const std::int64_t pass = i / options_.examples;
    if (pass != ordered_) {
      ordered_ = pass;
      order_.resize(static_cast<std::size_t>(options_.examples));
      std::iota(order_.begin(), order_.end(), 0);
      Stream random(seed_, first_order + static_cast<std::uint64_t>(pass));
      for (std::size_t k = order_.size(); options_.shuffle && k > 1; --k)
        std::swap(order_[k - 1], order_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
    }
    streams.push_back(order_[static_cast<std::size_t>(i % options_.examples)]);
  }
  return streams;
}

std::vector<std::vector<std::uint64_t>> Examples::valid() const { return batches(first_valid_, options_.valid_size); }

std::vector<std::vector<std::uint64_t>> Examples::test() const { return batches(first_test_, test_); }

std::vector<std::vector<std::uint64_t>> Examples::batches(std::uint64_t first, std::int64_t count) const {
  std::vector<std::vector<std::uint64_t>> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % options_.batch == 0) batches.emplace_back();
    batches.back().push_back(first + static_cast<std::uint64_t>(i));
  }
  return batches;
}

Drawn draw(const Task& task, std::uint64_t seed, std::vector<std::uint64_t> streams, std::int64_t parts,
           const Ranks& ranks) {
  Drawn drawn{std::move(streams), {}};
  if (parts == 1 || !task.trains_on_mean()) drawn.batch = task.batch(seed, drawn.streams);
  if (parts == 1) return drawn;
  const std::int64_t rows = std::ssize(drawn.streams);
  const auto start = [&](std::int64_t k) { return drawn.streams.begin() + part_start(rows, parts, k); };
  for (std::int64_t k = 0; k < parts; ++k)
    drawn.parts.push_back(ranks.mine(k) ? task.batch(seed, {start(k), start(k + 1)}) : Batch{});
  return drawn;
}

void check_entries(const Task& task, const std::string& of, double entries) {
  if (!(entries > 0))
    throw Error(task.name(), fmt::format("the weights that Task::batch gives for {} add up to {}; a mean needs more "
                                         "than 0",
                                         of, entries));
}

double entries_of(const Batch& batch) {
  return batch.weight.defined() ? sum(cast(batch.weight, DType::f64)).item() : static_cast<double>(batch.y.numel());
}

}  // namespace reel
