// Optimisers: a step changes the parameters in place and allocates nothing.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cells/cell.h"
#include "tasks/harness/schedule.h"

namespace reel {

struct OptimizerOptions {
  std::string kind = "rmsprop";  // sgd, rmsprop, adam, amsgrad, adagrad
  double lr = 1e-3;
  double momentum = 0;                     // sgd
  double decay = 0.9;                      // rmsprop: of the running mean of squares
  double epsilon = 1e-8;                   // all but sgd
  bool epsilon_inside = false;             // rmsprop: under the root (TensorFlow 1) instead of beside it (PyTorch)
  double rms_start = 0;                    // rmsprop: the running mean's first value: 0 (PyTorch), 1 (TensorFlow 1)
  double beta1 = 0.9, beta2 = 0.999;       // adam, amsgrad
  double clip_norm = 0;                    // all gradients together are scaled down to this norm; 0: not
  double clip_value = 0;                   // each element is kept within +-this, after clip_norm; 0: not
  std::map<std::string, double> group_lr;  // learning rates of parameter groups; those not named have lr
  static std::vector<std::string> kinds() { return {"sgd", "rmsprop", "adam", "amsgrad", "adagrad"}; }
};

/// The sum of squares of each gradient, to the first places of `out`, f64 on their device.
void sums_of_squares(const Tensors& gradients, Tensor out);
/// The norm of all together.
double norm_of(std::span<const double> squares);

/// The norm of all gradients together, by one reading. It allocates nothing from the second time on.
class Norm {
 public:
  double operator()(const Tensors& gradients);

 private:
  Tensor squares_;
  std::vector<double> read_;
};

class Optimizer {
 public:
  /// Throws Error when a group in group_lr is none of the parameters'.
  Optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options);

  /// The norm of all gradients together; gradients are in the order of the parameters.
  double norm(const Tensors& gradients) { return norm_(gradients); }
  /// One update, with all rates times lr_factor. `norm` is that of the gradients. A parameter with a retraction of its
  /// own takes that instead of the rule.
  void step(const Tensors& gradients, double norm, double lr_factor = 1);

  // The same in three parts, of which update() needs nothing from the host: it can be written down once for all steps.
  /// Tells the device what the next update takes.
  void tell(double lr_factor);
  /// Updates by the rule, unless the loss or a gradient is not finite: numbers, f64 on the device, are the loss and the
  /// sums of squares of the gradients.
  void update(const Tensors& gradients, const Tensor& numbers);
  /// What is left after an update: retractions, and counting.
  void finish(const Tensors& gradients, double norm, double lr_factor);

  std::int64_t steps() const { return steps_; }
  /// Everything that the next step depends on besides the parameters, by name: for checkpoints. The tensors share
  /// storage with the optimiser's.
  std::vector<std::pair<std::string, Tensor>> state() const;
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  struct Slot {
    Parameter parameter;
    double lr;
    Tensor state[3];
  };
  double norm_limit() const;
  void write_numbers(double scale, double lr_factor);
  void apply(const Tensors& gradients);
  template <class Rule>
  void apply(const Rule& rule, DType dtype, const Tensors& gradients);

  OptimizerOptions options_;
  std::vector<Slot> slots_;
  Norm norm_;
  Tensor numbers_;                   // UpdateNumbers, f64, on the device
  std::vector<UpdatePlace> places_;  // room for those of an update
  std::int64_t steps_ = 0;
};

}  // namespace reel
