// What a task is to the training loop: batches by number, a loss and an accuracy.
#pragma once
#include "tasks/harness/model.h"

namespace reel {

struct Batch {
  Tensor x;  // i32 [T, B] or numbers [T, B, inputs]
  Tensor y;
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
  /// Examples made from these random streams, one each: the same stream gives the same example in any batch.
  virtual Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const = 0;
  /// A scalar, the mean over the batch.
  virtual Tensor loss(const Tensor& outputs, const Batch& batch) const = 0;
  /// Between 0 and 1.
  virtual double accuracy(const Tensor& outputs, const Batch& batch) const = 0;
};

/// Which examples a step trains on: fresh ones, or a fixed set gone through again and again.
struct ExampleOptions {
  std::int64_t batch = 20;
  std::int64_t examples = 0;  // size of the fixed set; 0: fresh examples
  bool shuffle = true;        // a fixed set is put into a new order each time through
  std::int64_t valid_size = 400;
};

class Examples {
 public:
  Examples(const ExampleOptions& options, std::uint64_t seed) : options_(options), seed_(seed) {}
  /// Streams of training step `step` (from 0).
  std::vector<std::uint64_t> train(std::int64_t step);
  /// Streams of the validation set, in batches.
  std::vector<std::vector<std::uint64_t>> valid() const;

 private:
  ExampleOptions options_;
  std::uint64_t seed_;
  std::int64_t ordered_ = -1;  // the pass that order_ belongs to
  std::vector<std::uint64_t> order_;
};

}  // namespace reel
