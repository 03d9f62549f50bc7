// What a task gives the training loop: batches of numbered examples, a loss and an accuracy; and for a data set, its
// parts.
#pragma once
#include <cmath>
#include <limits>

#include "tasks/training/model.h"
#include "tasks/training/ranks.h"

namespace reel {

/// How many examples a data set has in each part. Their streams are consecutive: 0 to train - 1 for training, then
/// those for validation, then those for the test. 0 for training or validation: as many as are asked for.
struct Parts {
  std::int64_t train = 0, valid = 0, test = 0;
  bool ordered = false;  // never shuffled: an example continues where another one ends
};

/// A mean that papers report.
struct Score {
  std::string name;
  double total = 0, count = 0;
  bool root = false;                    // the root of the mean is reported
  std::string none = "nothing counts";  // why, if count is 0
  double mean() const { return root ? std::sqrt(total / count) : total / count; }
};

class Task {
 public:
  virtual ~Task() = default;
  /// A part of a run folder's name.
  virtual std::string name() const = 0;
  /// Name and size, for the picture: "copying, T = 200".
  virtual std::string title() const { return name(); }
  virtual ModelShape shape() const = 0;
  /// The loss of the best answer without any memory.
  virtual double baseline() const = 0;
  /// The parts of a data set; without them examples never run out, and there is no test.
  virtual Parts parts() const { return {}; }
  /// One example per stream: the same stream gives the same example in any batch. The stream either seeds a random
  /// example, or is its index in a data set.
  virtual Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const = 0;
  /// True if the examples continue those of the batch before, so that the states carry over.
  virtual bool continues(const std::vector<std::uint64_t>&) const { return false; }
  /// True if what is asked at a step is read later in the same sequence: a model that reads backwards would see it.
  virtual bool forecasts() const { return false; }
  /// A scalar, the weighted mean over all entries of the batch. On a GPU a training step is captured, and later ones
  /// replay it: they do not call this, and a number from the host keeps its value. What changes from step to step comes
  /// with the batch (Batch::more), or is a tensor on the device that is assigned.
  virtual Tensor loss(const Tensor& outputs, const Batch& batch) const = 0;
  /// The factor on the loss in training, if a paper does not train on the mean.
  virtual double scale(const Batch&) const { return 1; }
  /// True promises that scale() is 1 for every batch. Then a batch that is computed in parts need not be made as a
  /// whole.
  virtual bool trains_on_mean() const { return false; }
  /// Between 0 and 1, a mean over the same entries; NaN for a task that has none.
  virtual double accuracy(const Tensor&, const Batch&) const { return std::numeric_limits<double>::quiet_NaN(); }
  /// What else is reported on the test set.
  virtual std::vector<Score> scores(const Tensor&, const Batch&) const { return {}; }
  /// Steps of the first example between which something happens; pictures over time draw vertical lines there.
  virtual std::vector<double> marks(const Batch&) const { return {}; }
};

/// Throws OutOfMemory if a batch needs more memory than the machine has: `bytes` for each step of each sequence.
void require_batch(const std::string& task, std::int64_t steps, std::int64_t batch, double bytes);

/// Throws Error unless this name, of a task or its program, can be part of a run folder's.
void check_name(const std::string& what, const std::string& name);
/// Throws Error naming the task for a name, a shape or parts that no run can have. A model of its own has its own
/// shape.
void check_task(const Task& task, bool own_model);
/// Throws Error naming the task unless weight fits y, and x is what task.shape() says, of so many sequences. A model of
/// the task's own may read others.
void check_batch(const Task& task, const Model& model, const Batch& batch, std::int64_t sequences);

/// Chooses the examples that a step trains on: fresh ones, or a fixed set that is cycled through.
struct ExampleOptions {
  std::int64_t batch = 20;
  std::int64_t parts = 1;         // a batch is cut into so many, and their gradients are added
  std::int64_t examples = 0;      // size of the fixed set; 0: fresh examples, or all of a data set
  bool shuffle = true;            // a fixed set gets a new order on each pass
  std::int64_t valid_size = 400;  // 0: all of a data set
};

class Examples {
 public:
  /// Throws SettingError if more are asked for than there are, and if a batch has fewer examples than parts.
  Examples(const ExampleOptions& options, std::uint64_t seed, const Parts& parts = {});
  /// The streams of training step `step` (from 0).
  std::vector<std::uint64_t> train(std::int64_t step);
  /// The streams of the validation set, in batches.
  std::vector<std::vector<std::uint64_t>> valid() const;
  /// The streams of the test set, in batches; none if there is no such set.
  std::vector<std::vector<std::uint64_t>> test() const;
  /// The number of updates in an epoch: those of a pass through the training set. The next pass fills its last batch,
  /// so that all batches are full. 0 if the set never ends.
  std::int64_t steps_per_epoch() const { return (options_.examples + options_.batch - 1) / options_.batch; }

 private:
  std::vector<std::vector<std::uint64_t>> batches(std::uint64_t first, std::int64_t count) const;

  ExampleOptions options_;
  std::uint64_t seed_, first_valid_, first_test_;
  std::int64_t test_;
  std::int64_t ordered_ = -1;  // the pass that order_ belongs to
  std::vector<std::uint64_t> order_;
};

/// The examples of a training step.
struct Drawn {
  std::vector<std::uint64_t> streams;
  Batch batch;  // empty if it is cut and the task trains on the mean
  /// The same examples in parts, in order; none: the batch is not cut. Those of other ranks are empty.
  std::vector<Batch> parts = {};
};
/// The first of `rows` rows that belongs to part k of so many, which are equal or differ by one row.
inline std::int64_t part_start(std::int64_t rows, std::int64_t parts, std::int64_t k) { return rows * k / parts; }
/// Makes the batch of these streams, and if there are several parts, those of this rank.
Drawn draw(const Task& task, std::uint64_t seed, std::vector<std::uint64_t> streams, std::int64_t parts,
           const Ranks& ranks = {});

/// Throws Error naming the task unless a mean over so many entries has a value.
void check_entries(const Task& task, const std::string& of, double entries);
/// What the mean loss of a batch is a mean over: its entries, by their weights.
double entries_of(const Batch& batch);

}  // namespace reel
