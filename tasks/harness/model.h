// A model around any cell: symbols or numbers in, a stack of cells over time, a linear head. What a task needs beyond
// that is a class of its own, made of the same pieces.
#pragma once
#include <optional>

#include "cells/cell.h"

namespace reel {

struct Batch {
  Tensor x;  // i32 [T, B] or numbers [T, B, inputs]
  Tensor y;
  Tensor weight = {};  // of each place of y in the loss: 0 for padding; undefined: all count the same
  Tensors more = {};   // what a model of the task's own takes besides
};

struct ModelShape {
  std::int64_t vocabulary = 0;  // symbols in (i32 [T, B]); 0: numbers in ([T, B, inputs])
  std::int64_t inputs = 0;
  std::int64_t outputs = 1;
  bool every_step = true;  // outputs at all times [T, B, outputs], or at the last one [B, outputs]
};

struct ModelOptions {
  std::string cell = "srnn";
  std::int64_t hidden = 128, layers = 1;
  std::string input = "embedding";                   // for symbols: embedding (trained, normal start) or one-hot
  std::int64_t embedding = 0;                        // width of the embedding; 0: what the cell's paper has
  double dropout = 0;                                // of what goes from a layer to the next, in training
  std::int64_t checkpoint_every = 0;                 // steps between kept states; 0: all are kept
  std::map<std::string, std::string> settings = {};  // of the cell
};

/// The random numbers of a training step.
struct TrainingStep {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  Tensor number = {};  // the step, f64 on the device; if defined, it is read there whenever the step runs
};

class Model {
 public:
  Model(const ModelShape& shape, const ModelOptions& options, Init init);

  virtual ~Model() = default;
  Model(Model&&) = default;

  /// Outputs for a batch of sequences; with dropout in a training step. They start from the states in `carry`, when
  /// there are any, and leave the last ones there.
  Tensor operator()(const Tensor& x, const std::optional<TrainingStep>& training = std::nullopt,
                    Tensors* carry = nullptr) const;
  /// The same for all of a batch that this model looks at.
  virtual Tensor forward(const Batch& batch, const std::optional<TrainingStep>& training = std::nullopt,
                         Tensors* carry = nullptr) const {
    return (*this)(batch.x, training, carry);
  }
  /// The cells, from below, each with what it sees of x: [T, B, width].
  std::vector<std::pair<const Cell*, Tensor>> layers(const Tensor& x) const;
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Where it computes.
  Backend& device() const { return parameters_.front().value.backend(); }
  /// Those that are trained.
  std::vector<Parameter> trained() const;
  /// What the cells add to the loss, a scalar; undefined for nothing.
  Tensor penalty() const;
  /// Called after each update of the parameters.
  void updated();
  /// How many numbers are trained.
  std::int64_t count() const;
  /// Names, shapes and counts of all parameters, as the lines of a table.
  std::string table() const;

 protected:
  /// Of no parts yet: for a model of another build, which adds them.
  Model() = default;
  Tensor add(Parameter parameter);
  /// A cell whose parameters are called PREFIXname.
  const Cell& add_cell(const std::string& prefix, std::int64_t width, const ModelOptions& options, Init& init);
  /// A linear layer `name`.V, `name`.c with PyTorch's start.
  std::pair<Tensor, Tensor> add_head(const std::string& name, std::int64_t outputs, std::int64_t width, Init& init);

 private:
  ModelShape shape_;
  std::string input_;
  double dropout_ = 0;
  std::int64_t checkpoint_every_ = 0;
  DType dtype_ = DType::f32;
  Tensor table_, V_, c_;  // table_: what symbols stand for
  std::vector<std::unique_ptr<Cell>> cells_;
  std::vector<Parameter> parameters_;
};

}  // namespace reel
