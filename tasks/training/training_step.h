// Training steps, from a batch to the updated parameters. On a device that supports it, a step's kernels are captured
// once (a CUDA graph), and each later step of the same shapes replays them with one launch. A batch may be computed in
// parts, whose gradients are added: it needs the memory of a part. Several processes share the parts out.
#pragma once
#include <deque>
#include <span>
#include <utility>

#include "tasks/training/gradient_sum.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/task.h"

namespace reel {

/// The result of a step. If one of these is not finite nothing was updated; without a finite loss there is no norm.
struct StepResult {
  double loss = 0, norm = 0;   // norm: of all gradients together
  std::int64_t bad_part = -1;  // of several ranks: the part whose loss is not finite
};

class TrainingStep {
 public:
  /// `graphs`: capture steps if the device can; false: run each kernel by kernel. With `ranks`, each of them computes
  /// its parts, and all make the same update.
  TrainingStep(const Task& task, Model& model, Optimizer& optimizer, bool graphs, Ranks* ranks = nullptr);

  /// One step with a batch on any device, with all learning rates times lr_factor. Starts from the states in `carry`,
  /// if there are any, and stores the last states there; they are valid until the end of the next step. `parts`: the
  /// same examples in parts as draw() makes them, to compute one after the other. With several ranks the rows of other
  /// ranks' parts are 0 in the last states; whole_states() gets them. `gradients`, if not null, gets those of the
  /// trained parameters, not clipped; they are valid until the next step.
  StepResult operator()(const Batch& batch, const StepContext& at, Tensors& carry, double lr_factor = 1,
                        std::span<const Batch> parts = {}, Tensors* gradients = nullptr);
  /// Why steps are not captured although the device could; returned once.
  std::optional<std::string> note() { return std::exchange(note_, std::nullopt); }
  /// How many kinds of step are captured.
  int recorded() const { return recorded_; }
  /// Kernels and copies in the latest captured graph.
  std::size_t kernels() const { return kernels_; }

 private:
  /// What two steps must have in common to share a captured graph.
  struct Kind {
    std::vector<Spec> specs;
    bool scaled, whole;
    std::uint64_t seed;  // of dropout
    bool operator==(const Kind&) const = default;
  };
  /// What is computed of a batch.
  struct Share {
    double scale = 1;   // of the task
    double of = 1;      // of the whole batch's loss
    bool whole = true;  // also the update; false: only gradients
  };
  /// What a step reads and writes. One that can be captured has memory of its own; others share the caller's.
  struct Work {
    Batch batch;
    Tensors carry_in;    // the initial states
    Tensor told = {};    // own memory: f64, the factor of the loss, the number of the step and the share
    Tensors carry = {};  // the last states; in own memory the next step starts from them, if there are any before
    Tensors gradients = {};
    Tensor numbers = {};  // f64: the loss, then the sums of squares of the gradients
    std::unique_ptr<CapturedGraph> graph = nullptr;
  };
  struct Seen {
    Kind kind;
    int times = 0;
    std::unique_ptr<Work> work = nullptr;  // once captured
  };
  /// Drops captured steps if a parameter on the host has changed: what a step computes may depend on it.
  void forget_outdated();

  static constexpr int most = 4;  // captured kinds; each holds the memory of a step

  std::unique_ptr<Work> room_for(const Batch& batch, const Tensors& carry) const;
  void put(Work& work, const Batch& batch, const StepContext& at, const Tensors& carry, const Share& share) const;
  void compute(Work& work, const StepContext& at, const Share& share) const;
  bool capture(Work& work, const StepContext& at, const Share& share);
  std::vector<double> pass(const Batch& batch, const StepContext& at, Tensors& carry, const Share& share);
  std::vector<double> run(Work& work, const Batch& batch, const StepContext& at, Tensors& carry, const Share& share);
  std::vector<double> run(const Batch& batch, const StepContext& at, Tensors& carry, const Share& share);
  std::vector<double> add_up(std::span<const Batch> parts, const StepContext& at, Tensors& carry, double scale);
  void finish_sum(int parts);
  void run_sum();

  const Task& task_;
  Model& model_;
  Optimizer& optimizer_;
  Backend& device_;
  Tensors parameters_;
  Tensors gradients_;  // from pass() or add_up() to the end of the step
  Tensors sums_;       // memory for the sums
  Tensor numbers_;     // f64, of add_up(): the loss, then the sums of squares
  Ranks alone_, &ranks_;
  GradientSum sum_;             // of several ranks
  std::int64_t bad_part_ = -1;  // StepResult::bad_part
  bool graphs_, sum_graphs_, sum_seen_ = false, sum_capturing_ = false;
  std::unique_ptr<CapturedGraph> sum_graph_;  // sum and update, of ranks that are linked by their devices
  std::vector<std::uint32_t> host_versions_;  // of parameters on the host, when seen_ began
  int recorded_ = 0;
  std::size_t kernels_ = 0;
  std::deque<Seen> seen_;
  std::optional<std::string> note_;
};

/// The states after a step in so many parts, each with the rows of all ranks.
Tensors whole_states(const Tensors& states, std::int64_t parts, Ranks& ranks);

}  // namespace reel
