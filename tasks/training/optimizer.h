// Optimisers: a step changes the parameters in place and allocates nothing.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cells/cell.h"
#include "ops/functors/update.h"
#include "tasks/training/schedule.h"

namespace reel {

struct OptimizerOptions {
  std::string kind = "rmsprop";  // one of kinds()
  double lr = 1e-3;
  double momentum = 0;                          // sgd
  double decay = 0.9;                           // rmsprop: decay of the running mean of squares
  double epsilon = 1e-8;                        // all but sgd
  bool epsilon_inside = false;                  // rmsprop: inside the root (TensorFlow 1) instead of outside (PyTorch)
  double rms_start = 0;                         // rmsprop: initial running mean: 0 (PyTorch), 1 (TensorFlow 1)
  double beta1 = 0.9, beta2 = 0.999;            // adam, adamw, amsgrad
  double weight_decay = 0;                      // of all parameters but those on a manifold; adamw's is decoupled
  double clip_norm = 0;                         // scale all gradients down to this joint norm; 0: off
  double clip_value = 0;                        // clamp each element to +-this, after clip_norm; 0: off
  std::map<std::string, double> group_lr = {};  // learning rates of parameter groups; other groups use lr
  static std::vector<std::string> kinds() { return {"sgd", "rmsprop", "adam", "adamw", "amsgrad", "adagrad"}; }
  /// The weight decay that PyTorch's optimiser of this kind has unless it is given one.
  static double usual_weight_decay(const std::string& kind) { return kind == "adamw" ? 0.01 : 0; }
};

/// Writes the sum of squares of each gradient to the first elements of `out`, f64 on their device.
void sums_of_squares(const Tensors& gradients, Tensor out);
/// The joint norm, from the sums of squares.
double norm_of(std::span<const double> squares);

/// The joint norm of all gradients, with one read from the device. Allocates nothing after the first call.
class JointNorm {
 public:
  double operator()(const Tensors& gradients);

 private:
  Tensor squares_;
  std::vector<double> read_;
};

/// Throws SettingError for an option that is out of range.
void check(const OptimizerOptions& options);

class Optimizer {
 public:
  /// Throws SettingError for an option that is out of range, or a group in group_lr that matches no parameter.
  Optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options);

  /// The joint norm of all gradients, which are in the order of the parameters.
  double norm(const Tensors& gradients) { return norm_(gradients); }
  /// One update, with all learning rates times lr_factor; `norm` is the joint norm of the gradients. A parameter with a
  /// retraction uses that instead of the rule. Throws Error unless each gradient is of its parameter's dtype and shape.
  void step(const Tensors& gradients, double norm, double lr_factor = 1);

  // The same in three parts. update() needs nothing from the host, so one capture of it serves all steps.
  /// Writes the values that the next update needs to the device.
  void set_step(double lr_factor);
  /// Applies the rule, unless the loss or a gradient is not finite. `numbers`, f64 on the device, holds the loss and
  /// then the sums of squares of the gradients.
  void update(const Tensors& gradients, const Tensor& numbers);
  /// Finishes an update: applies retractions, and counts the step.
  void finish(const Tensors& gradients, double norm, double lr_factor);

  std::int64_t steps() const { return steps_; }
  /// Does it decay weights more than its kind does by itself?
  bool decays() const { return options_.weight_decay > OptimizerOptions::usual_weight_decay(options_.kind); }
  /// Does it limit the norm of the gradients?
  bool clips_norm() const { return options_.clip_norm > 0; }
  /// Does nothing keep the rule from dividing by numbers near 0? An epsilon below what f32 has is none.
  bool lacks_epsilon() const { return options_.kind != "sgd" && static_cast<float>(options_.epsilon) == 0; }
  /// Everything that the next step depends on besides the parameters, by name, for checkpoints. The tensors share
  /// storage with the optimiser's.
  std::vector<std::pair<std::string, Tensor>> state() const;
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Sets the learning rate of all groups that have none of their own. Throws SettingError unless it is finite, 0 or
  /// more.
  void set_lr(double lr);

 private:
  struct Slot {
    Parameter parameter;
    double lr;
    Tensor state[3];
  };
  double norm_limit() const;
  void write_rates();
  void write_numbers(double scale, double lr_factor);
  void apply(const Tensors& gradients);
  template <class Rule>
  void apply(const Rule& rule, DType dtype, const Tensors& gradients);

  OptimizerOptions options_;
  std::vector<Slot> slots_;
  JointNorm norm_;
  std::vector<UpdatePlace> places_;  // reused by all updates, so that they allocate nothing
  Tensor numbers_;                   // UpdateNumbers, f64, on the device
  Tensor rates_;                     // learning rates of the slots, f64, on the device
  std::int64_t steps_ = 0;
};

}  // namespace reel
