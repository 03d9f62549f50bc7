// What a task is to the training loop: batches by number, a loss and an accuracy; and for a data set, its parts.
#pragma once
#include <limits>

#include "tasks/harness/model.h"

namespace reel {

/// How many examples a data set has in each part. Their streams are numbers in a row: 0 to train - 1 are to train on,
/// then come those to validate on, then those of the test. 0 to train or validate on: as many as are asked for.
struct Parts {
  std::int64_t train = 0, valid = 0, test = 0;
  bool ordered = false;  // never shuffled: an example goes on where another one ends
};

/// A mean that papers report.
struct Score {
  std::string name;
  double total = 0, count = 0;
  double mean() const { return total / count; }
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string name() const = 0;
  /// Name and size, for the picture: "copying, T = 200".
  virtual std::string title() const { return name(); }
  virtual ModelShape shape() const = 0;
  /// The loss of the best answer that remembers nothing.
  virtual double baseline() const = 0;
  /// Of a data set; without it examples have no end, and there is no test.
  virtual Parts parts() const { return {}; }
  /// Examples of these streams, one each: the same stream gives the same example in any batch. They are made at random
  /// from it, or it is their place in a data set.
  virtual Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const = 0;
  /// True for examples that go on where those of the batch before ended: the states are carried over.
  virtual bool continues(const std::vector<std::uint64_t>&) const { return false; }
  /// A scalar, the mean over all places of the batch, by their weight.
  virtual Tensor loss(const Tensor& outputs, const Batch& batch) const = 0;
  /// What the loss is multiplied by to be trained on, where a paper does not train on the mean.
  virtual double scale(const Batch&) const { return 1; }
  /// Between 0 and 1, as a mean over the same places; NaN for a task that has none.
  virtual double accuracy(const Tensor&, const Batch&) const { return std::numeric_limits<double>::quiet_NaN(); }
  /// What is reported of the test besides.
  virtual std::vector<Score> scores(const Tensor&, const Batch&) const { return {}; }
  /// Steps of the first example where something happens, between which pictures over time draw a line.
  virtual std::vector<double> marks(const Batch&) const { return {}; }
};

/// Throws OutOfMemory when a batch of a task is more than the machine has: `bytes` for each step of each sequence.
void require_batch(const std::string& task, std::int64_t steps, std::int64_t batch, double bytes);

/// Which examples a step trains on: fresh ones, or a fixed set gone through again and again.
struct ExampleOptions {
  std::int64_t batch = 20;
  std::int64_t examples = 0;      // size of the fixed set; 0: fresh examples, or all of a data set
  bool shuffle = true;            // a fixed set is put into a new order each time through
  std::int64_t valid_size = 400;  // 0: all of a data set
};

class Examples {
 public:
  /// Throws OptionError when more are asked for than there are.
  Examples(const ExampleOptions& options, std::uint64_t seed, const Parts& parts = {});
  /// Streams of training step `step` (from 0).
  std::vector<std::uint64_t> train(std::int64_t step);
  /// Streams of the validation set, in batches.
  std::vector<std::vector<std::uint64_t>> valid() const;
  /// Streams of the test set, in batches; none when there is no such set.
  std::vector<std::vector<std::uint64_t>> test() const;
  /// How many updates go once through the training set; 0 when it has no end.
  std::int64_t steps_per_epoch() const { return (options_.examples + options_.batch - 1) / options_.batch; }

 private:
  std::vector<std::vector<std::uint64_t>> batches(std::uint64_t first, std::int64_t count) const;

  ExampleOptions options_;
  std::uint64_t seed_, first_valid_, first_test_;
  std::int64_t test_;
  std::int64_t ordered_ = -1;  // the pass that order_ belongs to
  std::vector<std::uint64_t> order_;
};

}  // namespace reel
