// A model around any cell: symbols or numbers in, a stack of cells over time, a linear head. A task that needs more
// derives a class of its own, made of the same parts.
#pragma once
#include <optional>

#include "cells/cell.h"

namespace reel {

struct Batch {
  Tensor x;  // symbols or levels i32 [T, B], or numbers [T, B, inputs]
  Tensor y;
  Tensor weight = {};   // of each entry of y in the loss: 0 for padding; undefined: all count the same
  Tensors more = {};    // further inputs for a task's own model
  Tensor lengths = {};  // i32 [B]: steps of each sequence, the rest is padding; undefined: all are whole
};

struct ModelShape {
  std::int64_t vocabulary = 0;  // number of input symbols (i32 [T, B]); 0: numbers ([T, B, inputs])
  std::int64_t inputs = 0;      // numbers of an input; not used with a vocabulary
  std::int64_t outputs = 1;
  bool every_step = true;  // outputs at all steps [T, B, outputs], or at the last one [B, outputs]
  Tensor levels = {};      // [levels, inputs]: inputs that take few values may be i32 [T, B], rows of this table
};

/// One of unlike layers.
struct LayerOptions {
  std::string cell = "srnn";
  std::int64_t hidden = 128;
  std::map<std::string, std::string> settings = {};  // of the cell
};

struct ModelOptions {
  std::string cell = "srnn";
  std::int64_t hidden = 128, layers = 1;
  std::string input = "embedding";                   // for symbols: embedding (trained, normal init) or one-hot
  std::int64_t embedding = 0;                        // width of the embedding; 0: that of the cell's paper
  std::string head_init = "linear";                  // how the head starts: one of head_inits()
  bool bidirectional = false;                        // each layer also reads the sequence from its end
  bool layer_norm = false;                           // of the input of each layer above the first
  bool residual = false;                             // each layer above the first adds its input to its output
  double zoneout = 0;                                // share of each state that keeps its value in training
  double dropout = 0;                                // between layers, in training
  bool variational = false;                          // drops the same values at all steps of a sequence
  std::int64_t checkpoint_every = 0;                 // steps between saved states; 0: all are saved
  std::map<std::string, std::string> settings = {};  // settings of the cell
  std::vector<LayerOptions> stack = {};              // unlike layers: in place of cell, hidden, layers and settings

  /// linear: as PyTorch's Linear; glorot-normal and glorot-uniform: with bias 0; eunn: as the code of EUNN and GORU,
  /// uniform in +-sqrt(6 / (inputs of the first cell + outputs)) with bias 0.01.
  static const std::vector<std::string>& head_inits();
};

/// The layers from bottom to top.
std::vector<LayerOptions> layers_of(const ModelOptions& options);
/// The options with all settings of the cells, also those that are left to their defaults.
ModelOptions with_all_settings(ModelOptions options);

/// What the random numbers of a training step depend on.
struct StepContext {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  Tensor number = {};  // the step, f64 on the device; if defined, it is read there whenever the step runs
};

/// A layer of a model, or one direction of it, and what it reads.
struct LayerInput {
  const Cell* cell;
  Tensor x;               // [T, B, width], in its own direction
  std::size_t layer = 1;  // from the bottom
  bool backward = false;  // it reads from the end
  Zoneout zoneout = {};   // its mean, as outside training
};

class Model {
 public:
  Model(const ModelShape& shape, const ModelOptions& options, Init init);

  virtual ~Model() = default;
  Model(Model&&) = default;

  /// Outputs for a batch of sequences, with dropout in a training step. Starts from the states in `carry`, if there are
  /// any, and stores the last states there. With lengths i32 [B], states hold still over padding: the last output is
  /// that of each sequence's own end. Throws Error for an x of other axes or another width than ModelShape says, and
  /// for a carry into a bidirectional model.
  Tensor operator()(const Tensor& x, const std::optional<StepContext>& training = std::nullopt,
                    Tensors* carry = nullptr, const Tensor& lengths = {}) const;
  /// One time step: x i32 [B] or [B, inputs] -> outputs [B, outputs]; `states` are those of all layers, as in `carry`
  /// (none: the first ones), and become the next ones. Throws Error unless recurrent(), and for another x.
  Tensor step(const Tensor& x, Tensors& states) const;
  /// The states before the first step, of all layers; none of a bidirectional model, as they do not carry over.
  Tensors initial(std::int64_t batch) const;
  /// False if a layer needs the whole sequence at once.
  bool recurrent() const;
  /// The same for everything in a batch that this model uses.
  virtual Tensor forward(const Batch& batch, const std::optional<StepContext>& training = std::nullopt,
                         Tensors* carry = nullptr) const {
    return (*this)(batch.x, training, carry, batch.lengths);
  }
  /// The cells from bottom to top, with what they read when the model reads x.
  std::vector<LayerInput> layers(const Tensor& x) const;
  /// The cells from bottom to top.
  const std::vector<std::unique_ptr<Cell>>& cells() const { return cells_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The device of the parameters.
  Backend& device() const { return parameters_.front().value.backend(); }
  /// The parameters that are trained.
  std::vector<Parameter> trained() const;
  /// A scalar that the cells add to the loss; undefined for none.
  Tensor penalty() const;
  /// Called after each update of the parameters.
  void updated();
  /// The number of trained values.
  std::int64_t count() const;
  /// The names, shapes and counts of all parameters, as the lines of a table.
  std::string table() const;

 protected:
  /// An empty model, for derived classes that add their own parts.
  Model() = default;
  /// Throws Error if another parameter already has the name or the tensor.
  Tensor add(Parameter parameter);
  /// Adds a cell whose parameters are called PREFIXname; `layers` is how many there will be of about its size.
  const Cell& add_cell(const std::string& prefix, std::int64_t width, const LayerOptions& options, Init& init,
                       std::size_t layers = 1);
  /// Adds a linear layer `name`.V, `name`.c that starts as `start` says, one of ModelOptions::head_inits(). Throws
  /// SettingError for any other.
  std::pair<Tensor, Tensor> add_head(const std::string& name, std::int64_t outputs, std::int64_t width,
                                     const std::string& start, Init& init);

 private:
  /// x has rows of table_: symbols or levels.
  bool indexes(const Tensor& x) const { return shape_.vocabulary > 0 || (table_.defined() && x.dtype() == DType::i32); }
  /// What the first cell reads when the model reads x: [T, B, width], or [B, width] of one step.
  Tensor numbers(const Tensor& x) const { return indexes(x) ? embedding(x, table_) : cast(x, dtype_); }
  /// The input of a layer above the first (counted from 0), from the outputs of the one below.
  Tensor into(std::size_t layer, const Tensor& h, const std::optional<StepContext>& training) const;
  void check_states(const Tensors& states) const;
  /// Throws Error unless x is what the model reads: sequences, or one step of them.
  void check_input(const Tensor& x, bool step) const;
  Tensor dropped(const Tensor& h, std::size_t layer, const StepContext& at) const;
  /// What drops values inside cell c (CellInput::drop).
  std::function<Tensor(const Tensor&, double)> inner_dropout(std::size_t c, const StepContext& at) const;
  /// Where the states of cell c keep their values in a training step of T time steps.
  Tensors zoned(std::size_t c, std::int64_t T, std::int64_t batch, const StepContext& at) const;

  ModelShape shape_;
  std::string input_;
  bool bidirectional_ = false, residual_ = false, variational_ = false;
  double dropout_ = 0, zoneout_ = 0;
  std::int64_t checkpoint_every_ = 0;
  DType dtype_ = DType::f32;
  Tensor table_, V_, c_;                          // table_: the rows that symbols and levels index
  std::vector<std::unique_ptr<Cell>> cells_;      // bidirectional: forward and backward in turn
  std::vector<std::pair<Tensor, Tensor>> norms_;  // gain and bias of each layer above the first
  std::vector<Parameter> parameters_;
};

}  // namespace reel
