// Recurrence as an op. scan(step, state0, xs) traces the step once and runs it for every time step. Its gradient is a
// scan in the other direction whose body is the derivative of the step. unroll() defines its meaning: a plain loop on
// the tape.
#pragma once
#include <functional>

#include "engine/scan/plan.h"

namespace reel {

/// The result of a step on the state [B, ...] and the inputs of one time step: the next state, and outputs to stack.
struct Next {
  Tensors state;
  Tensors y;
};
using Step = std::function<Next(const Tensors& state, const Tensors& x)>;

struct ScanOptions {
  bool reverse = false;      // run from the last time step to the first
  std::int64_t length = -1;  // number of steps, needed only when xs is empty; -1: that of xs
  ScanPasses passes = {};
  /// Saves the state only every n steps and recomputes the steps between for the gradient: memory for long sequences
  /// grows as T / n + n instead of T. 0: saves all states.
  std::int64_t checkpoint_every = 0;
};

struct ScanResult {
  Tensors last;  // the state after the last step
  Tensors ys;    // the step's outputs for all time steps, each [T, ...]; equal ones may share storage
};

/// Runs the step over the leading axis of xs (each [T, ...]), carrying the state.
/// Throws Error when xs differ in length, or the step's state does not keep its dtype and shape.
ScanResult scan(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options = {},
                Loc where = Loc::current());

/// scan() with options.checkpoint_every: a scan whose steps are scans. (segmented_scan.cpp)
ScanResult segmented_scan(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options,
                          std::int64_t length, const Loc& where);

/// The same result by a plain loop: T copies of the step on the tape.
ScanResult unroll(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options = {},
                  Loc where = Loc::current());

/// The op behind scan: runs the body of a planned loop. Inputs: carries, xs, consts. Outputs: the last carries, then
/// ys. With `save_carries` it also returns all values of each carry, stacked [T + 1, ...] in the order of time (a
/// reverse loop starts at the end); a y that is a next carry is then a view of these.
struct Scan {
  PlanPtr plan;
  bool operator==(const Scan&) const = default;

  static constexpr Traits traits{.name = "scan", .allocates = true};
  const Loop& loop() const { return plan->loop; }
  const Signature& signature() const { return plan->loop.signature; }
  int outputs() const {
    return static_cast<int>(loop().body.outputs.size()) + (signature().save_carries ? signature().carries : 0);
  }
  void infer(Inputs in, std::span<Spec> out) const;
  void allocate(Inputs in, std::span<Tensor> out) const;
  void run(Inputs in, std::span<Tensor> out) const;
  void vjp(Vjp& v) const;
};

}  // namespace reel
