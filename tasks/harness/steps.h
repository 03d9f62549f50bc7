// Training steps, from a batch to the updated parameters. On a device that can write kernels down, all that it is asked
// for meanwhile is written down once (a CUDA graph), and run by one launch at each later step of the same shapes.
#pragma once
#include <deque>
#include <utility>

#include "tasks/harness/optimizer.h"
#include "tasks/harness/task.h"

namespace reel {

/// What a step comes to. If one of these is not finite nothing was updated; without a finite loss there is no norm.
struct StepResult {
  double loss = 0, norm = 0;  // norm: of all gradients together
};

class Steps {
 public:
  /// `graphs`: write steps down where the device can; false: each one kernel by kernel.
  Steps(const Task& task, Model& model, Optimizer& optimizer, bool graphs);

  /// One step with a batch on any device, all learning rates times lr_factor. It starts from the states in `carry`,
  /// when there are any, and leaves the last ones there, which hold until the end of the next step.
  StepResult operator()(const Batch& batch, const TrainingStep& at, Tensors& carry, double lr_factor = 1);
  /// Why steps are not written down, where the device could; told once.
  std::optional<std::string> note() { return std::exchange(note_, std::nullopt); }
  /// How many kinds of step are written down.
  int recorded() const { return recorded_; }
  /// Kernels and copies of the one that was written down last.
  std::size_t kernels() const { return kernels_; }

 private:
  /// What two steps have in common that the same kernels do for.
  struct Kind {
    std::vector<Spec> specs;
    bool scaled;
    std::uint64_t seed;  // of what drops out
    bool operator==(const Kind&) const = default;
  };
  /// A step whose inputs and results lie on the device, so that its kernels can be written down.
  struct OnDevice {
    Batch batch;
    Tensor told;       // f64: the factor of the loss, the number of the step
    Tensor scale;      // the first of them; undefined for 1
    Tensors carry;     // the last states, and where the step looks for its first ones when there are any
    Tensors carry_in;  // the first ones, kept in case that something goes wrong
    Tensors gradients;
    Tensor numbers;  // f64: the loss, then the sums of squares of the gradients
    std::unique_ptr<Recording> recording;
  };
  struct Seen {
    Kind kind;
    int times = 0;
    std::unique_ptr<OnDevice> step = nullptr;  // written down
  };
  static constexpr int most = 4;  // kinds that are written down: each holds the memory of a step

  StepResult plain(const Batch& batch, const TrainingStep& at, Tensors& carry, double scale, double lr_factor);
  std::unique_ptr<OnDevice> room_for(const Batch& batch, const Tensors& carry, double scale) const;
  void put(OnDevice& step, const Batch& batch, const TrainingStep& at, const Tensors& carry, double scale) const;
  void compute(OnDevice& step, const TrainingStep& at) const;
  bool record(OnDevice& step, const TrainingStep& at);
  StepResult run(OnDevice& step, const Batch& batch, const TrainingStep& at, Tensors& carry, double scale,
                 double lr_factor);

  const Task& task_;
  Model& model_;
  Optimizer& optimizer_;
  Backend& device_;
  Tensors parameters_;
  bool graphs_;
  int recorded_ = 0;
  std::size_t kernels_ = 0;
  std::deque<Seen> seen_;
  std::optional<std::string> note_;
};

}  // namespace reel
