// Recurrence as an op. scan(step, state0, xs) traces the step once and runs it for every time step. Its gradient is a
// scan in the other direction whose body is the derivative of the step. unroll() defines its meaning: a plain loop on
// the tape.
#pragma once
#include <functional>
#include <memory>

#include "engine/scan/program.h"

namespace reel {

/// The result of a step on the state [B, ...] and the inputs of one time step: the next state, and outputs to stack.
struct Next {
  Tensors state;
  Tensors y;
};
using Step = std::function<Next(const Tensors& state, const Tensors& x)>;

/// Passes over the traced step. Each can be switched off; none changes a result.
struct ScanPasses {
  bool delay_gathers = true;    // f(table[i]) = f(table)[i], and f(table) is computed once before the loop
  bool hoist = true;            // what does not depend on the state runs once for all time steps, before the loop
  bool sink_reductions = true;  // what no state depends on (weight gradients) runs once for all, after the loop
  bool rematerialize = true;    // chooses which values to save for the backward loop and which to recompute
  bool fuse = true;             // elementwise calls run in fusion groups, block by block
  bool shard_batch = true;      // each thread runs its shard of the batch through all time steps
  bool hoist_inputs = true;     // false: hoist moves only what depends on consts, and stacks nothing over time
  static ScanPasses none() { return {false, false, false, false, false, false, false}; }
};

struct ScanOptions {
  bool reverse = false;     // run from the last time step to the first
  std::int64_t length = 0;  // number of steps; needed only when xs is empty
  ScanPasses passes = {};
  /// Saves the state only every n steps and recomputes the steps between for the gradient: memory for long sequences
  /// grows as T / n + n instead of T. 0: saves all states.
  std::int64_t checkpoint_every = 0;
};

struct ScanResult {
  Tensors last;  // the state after the last step
  Tensors ys;    // the step's outputs for all time steps, each [T, ...]
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

// ---- internal: shared by scan.cpp and the passes --------------------------------------------------------------------

/// A loop about to run. The body takes the carries, then one time step of each of xs; it returns the next carries, then
/// ys.
struct ScanCall {
  Program body;
  Tensors carry;   // the state before the first step
  Tensors xs;      // [T, ...] each
  Tensors consts;  // the body's other operands, the same for all steps
  std::int64_t length = 0;
  bool reverse = false;
  ScanPasses passes = {};
  int accumulators = 0;  // the last so many carries are running sums, read only by their own additions

  int carries() const { return static_cast<int>(carry.size()); }
  int ys() const { return static_cast<int>(body.outputs.size()) - carries(); }
};

/// The op behind scan. Inputs: carries, xs, consts. Outputs: the last carries, then ys. With `save_carries` it also
/// returns all values of each carry, stacked [T + 1, ...] in the order of time (a reverse loop starts at the end); a y
/// that is a next carry is then a view of these.
struct Scan {
  std::shared_ptr<const Program> body;
  int carries = 0;
  std::int64_t length = 0;
  bool reverse = false, save_carries = false;
  ScanPasses passes = {};
  int accumulators = 0;  // the last so many carries are running sums

  static constexpr Traits traits{.name = "scan", .allocates = true};
  int xs() const { return body->inputs - carries; }
  int ys() const { return static_cast<int>(body->outputs.size()) - carries; }
  int outputs() const { return carries + ys() + (save_carries ? carries : 0); }
  void infer(Inputs in, std::span<Spec> out) const;
  void allocate(Inputs in, std::span<Tensor> out) const;
  void run(Inputs in, std::span<Tensor> out) const;
  void vjp(Vjp& v) const;
};

/// Applies the passes and the Scan op; returns what scan() returns.
ScanResult run_scan(ScanCall call, const Loc& where);

/// Delays gathers: f(table[i]) = f(table)[i] for row-wise f, and the table has fewer rows than the loop gathers.
/// (delay_gathers.cpp)
void delay_gathers(ScanCall& call);

/// Moves what does not depend on the carries out of the loop. Ordinary ops compute it, as new xs. (hoist.cpp)
void hoist(ScanCall& call);

/// Runs a backward loop whose last `sums` outputs are summed over time: the body returns the next carries, then ys,
/// then these. Returns the last carries and ys as scan() does, with the sums at the end of ys. (sink_reductions.cpp)
ScanResult sink_reductions(ScanCall call, int sums, const Loc& where);

/// The residuals: values that the loop should save for the backward loop, besides its outputs. (rematerialize.cpp)
std::vector<int> choose_residuals(const Program& body);

/// Drops the xs that the body does not use.
void dce(ScanCall& call);

}  // namespace reel
