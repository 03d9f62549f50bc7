// Recurrence as an op. scan(step, state0, xs) traces the step once and runs it for every time step; its gradient is a
// scan in the other direction whose body is the derivative of the step. unroll() is what scan means: a plain loop on
// the tape.
#pragma once
#include <functional>
#include <memory>

#include "engine/program.h"

namespace reel {

/// What a step makes of the state [B, ...] and the inputs of one time: the next state, and outputs to keep.
struct Next {
  Tensors state;
  Tensors y;
};
using Step = std::function<Next(const Tensors& state, const Tensors& x)>;

/// Passes over the traced step; each can be switched off, none changes a result.
struct ScanPasses {
  bool tables = true;        // what is done to rows looked up in a table is done to the table, before the loop
  bool hoist = true;         // what does not depend on the state runs once for all time steps, before the loop
  bool sink = true;          // what the state does not depend on (weight gradients) runs once for all, after the loop
  bool save = true;          // what costs more to compute again than to keep is kept for the gradient
  bool fuse = true;          // runs of elementwise calls go through the step together, block by block
  bool rows = true;          // each thread takes its rows of the batch through all time steps
  bool hoist_inputs = true;  // false: hoist moves what depends on captures alone, and no slab is made of inputs
  static ScanPasses none() { return {false, false, false, false, false, false, false}; }
};

struct ScanOptions {
  bool reverse = false;     // run from the last time step to the first
  std::int64_t length = 0;  // number of steps; needed only when xs is empty
  ScanPasses passes = {};
  /// Keep the state only every so many steps, and run the steps between once more for the gradient: memory for long
  /// sequences grows as T / n + n instead of T. 0: keep all.
  std::int64_t checkpoint_every = 0;
};

struct ScanResult {
  Tensors last;  // the state after the last step
  Tensors ys;    // the step's outputs for all times, each [T, ...]
};

/// Runs the step over the leading axis of xs (each [T, ...]), carrying the state.
/// Throws Error when xs differ in length, or the step's state does not keep its dtype and shape.
ScanResult scan(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options = {},
                Where where = Where::current());

/// scan() with options.checkpoint_every: a scan whose steps are scans. (checkpoint.cpp)
ScanResult scan_with_checkpoints(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options,
                                 std::int64_t length, const Where& where);

/// The same as a plain loop: T copies of the step on the tape.
ScanResult unroll(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options = {},
                  Where where = Where::current());

// ---- the inside: shared by scan.cpp and the passes ------------------------------------------------------------------

/// A loop about to run: the body takes the carries, then one step of each of xs; it gives the next carries, then ys.
struct ScanCall {
  Program body;
  Tensors carry;     // the state before the first step
  Tensors xs;        // [T, ...] each
  Tensors captures;  // what the body uses besides, the same for all steps
  std::int64_t length = 0;
  bool reverse = false;
  ScanPasses passes = {};
  int sums = 0;  // how many of the carries, the last ones, are running sums that nobody else looks at

  int carries() const { return static_cast<int>(carry.size()); }
  int ys() const { return static_cast<int>(body.outputs.size()) - carries(); }
};

/// The op behind scan. Inputs: carries, xs, captures. Outputs: the last carries, then ys, then, when `keep` is set, for
/// each carry all its values [T + 1, ...] in the order of time (for a reverse loop the first one is at the end); a y
/// that is a next carry then looks into these.
struct Scan {
  std::shared_ptr<const Program> body;
  int carries = 0;
  std::int64_t length = 0;
  bool reverse = false, keep = false;
  ScanPasses passes = {};
  int sums = 0;  // of the carries, the last ones: running sums

  static constexpr Traits traits{.name = "scan", .allocates = true};
  int xs() const { return body->inputs - carries; }
  int ys() const { return static_cast<int>(body->outputs.size()) - carries; }
  int outputs() const { return carries + ys() + (keep ? carries : 0); }
  void infer(Inputs in, std::span<Spec> out) const;
  void allocate(Inputs in, std::span<Tensor> out) const;
  void run(Inputs in, std::span<Tensor> out) const;
  void vjp(Vjp& v) const;
};

/// Runs a loop through the passes and the op; the result is as scan()'s.
ScanResult run_scan(ScanCall call, const Where& where);

/// Where a step looks up rows of a table of few, what it does to each row by itself is done to the table. (tables.cpp)
void tables(ScanCall& call);

/// Moves out of the loop what does not depend on the carries: into new xs, computed by ordinary ops. (hoist.cpp)
void hoist(ScanCall& call);

/// A backward loop with sums over time among its outputs: the body's outputs are the next carries, then ys, then
/// `sums`. Runs it and returns last carries and ys as scan() does, and the sums at the end of ys. (sink.cpp)
ScanResult run_with_sums(ScanCall call, int sums, const Where& where);

/// Slots whose values the loop should put out for the gradient, besides its outputs. (save.cpp)
std::vector<int> worth_saving(const Program& body);

/// Drops those of xs that the body does not use.
void drop_unused(ScanCall& call);

}  // namespace reel
