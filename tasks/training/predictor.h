// A trained model that answers: whole sequences, or one row after another with its states kept between the calls.
#pragma once
#include <memory>
#include <span>

#include "tasks/training/model_file.h"
#include "tasks/training/safetensors.h"

namespace reel {

class Predictor {
 public:
  /// The model of a run folder, with the parameters of its best validation, or those of its checkpoint if it keeps no
  /// best ones. Throws Error naming the file that is missing, damaged, or of another model.
  explicit Predictor(const std::string& run);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  const ModelConfig& config() const;
  /// The file that the parameters are from.
  const std::string& weights() const;

  /// Outputs for whole sequences x, numbers [T, B, inputs] or symbols i32 [T, B]: [T, B, outputs], or [B, outputs] of a
  /// model that answers at the end. `lengths` i32 [B], 1 to T, says where each sequence ends, if not at T. The states
  /// of next() stay as they are. Throws Error for other shapes, lengths and symbols.
  Tensor operator()(const Tensor& x, const Tensor& lengths = {}) const;

  /// False for a model that reads whole sequences only: next() and what belongs to it throw Error.
  bool row_by_row() const;
  /// Reads one more row of numbers, [inputs], and returns the outputs after it, [outputs], which are valid until the
  /// next call. Throws Error for a row of another size, and for a model that needs whole sequences.
  std::span<const double> next(std::span<const double> row);
  /// The same for one more symbol.
  std::span<const double> next(std::int64_t symbol);
  /// Goes back to the states before the first row.
  void reset();
  /// A copy of the states after the last row, of all layers from bottom to top, each [1, width].
  Tensors states() const;
  /// Continues from these states; throws Error if they are not of this model.
  void set_states(const Tensors& states);
  /// Writes the states to a safetensors file, with more tensors of the caller's.
  void save_states(const std::string& path, const TensorFile& more = {}) const;
  /// Continues from the states in such a file; throws Error naming it and what does not fit, or that other parameters
  /// made them, which files of older versions do not say. Returns the tensors with these names, which are no states, as
  /// far as they are there; like the states, they must be finite.
  TensorFile load_states(const std::string& path, const std::vector<std::string>& more = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reel
