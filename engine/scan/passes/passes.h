// The passes over a loop: each is a function from Loop to Loop, in its own file, and changes no result.
#pragma once
#include "engine/scan/loop.h"

namespace reel {

/// Which passes run; each can be switched off.
struct ScanPasses {
  bool delay_gathers = true;    // f(table[i]) = f(table)[i], and f(table) is computed once before the loop
  bool hoist = true;            // what does not depend on the state runs once for all time steps, before the loop
  bool sink_reductions = true;  // what no state depends on (weight gradients) runs once for all, after the loop
  bool rematerialize = true;    // chooses which values to save for the backward loop and which to recompute
  bool fuse = true;             // elementwise calls run in fusion groups, block by block
  bool shard_batch = true;      // each thread runs its shard of the batch through all time steps
  bool hoist_inputs = true;     // false: hoist moves only what depends on consts, and stacks nothing over time
  bool operator==(const ScanPasses&) const = default;
  static ScanPasses none() { return {false, false, false, false, false, false, false}; }
};

/// Delays gathers: f(table[i]) = f(table)[i] for row-wise f, and the table has fewer rows than the loop gathers.
Loop delay_gathers(Loop loop, const ScanPasses& passes);
/// Moves what does not depend on the carries into the prologue.
Loop hoist(Loop loop, const ScanPasses& passes);
/// Moves what no carry depends on into the epilogue of a gradient's loop; sums over time become one op there.
Loop sink_reductions(Loop loop, const ScanPasses& passes);
/// Drops what no result needs, and duplicate ys.
Loop dce(Loop loop, const ScanPasses& passes);
/// Adds the residuals to the ys: values that the gradient's loop reads and should not recompute.
Loop rematerialize(Loop loop, const ScanPasses& passes);

/// A node's results of all time steps [T, ...], by its vmap, from what `value` has of its arguments: all steps if they
/// are `varying`. With `sum` their sum over time by vmap_sum, which may be undefined. Throws Error if the op gives
/// another dtype or shape.
Tensor all_steps(const Program& body, const Program::Node& node, const Tensors& value, const std::vector<char>& varying,
                 std::int64_t length, bool sum = false);

/// The residuals that a body should save in addition to its outputs.
std::vector<int> choose_residuals(const Program& body);

/// A pass, and what it does in a few words.
struct LoopPass {
  const char* name;
  Loop (*run)(Loop, const ScanPasses&);
  bool ScanPasses::*enabled;  // null: always
  const char* rule;
};
/// All passes, in the order in which they run (pipeline.cpp).
extern const LoopPass loop_passes[5];

/// Applies them. With REEL_PRINT_PASSES in the environment it prints the loop to stderr before the first pass and after
/// each one that changed it.
Loop optimize(Loop loop, const ScanPasses& passes);

}  // namespace reel
