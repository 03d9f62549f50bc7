// Plans: loops after their passes, cached under what they were made from. Tracing a step again gives an equal program,
// so a training step is planned once.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "engine/scan/passes/passes.h"

namespace reel {

class Lowering;  // scan/lower/lowering.h

struct Plan {
  Loop loop;
  ScanPasses passes;

  /// Does it hold tensors made during tracing? Such a plan is not cached: they may belong to a captured
  /// graph, or to a device that is gone.
  bool has_tensors() const { return !loop.prologue.consts.empty() || !loop.epilogue.consts.empty(); }

  /// The loop's gradient: its plan, the inputs that it reaches, and the carries that it reaches after some step.
  struct Gradient {
    std::shared_ptr<const Plan> plan;
    std::vector<char> inputs, carries;
  };
  /// Keyed by what is requested and what is given; without a plan if none was made, or cached.
  Gradient gradient(const std::string& key) const;
  void keep_gradient(const std::string& key, const Gradient& gradient) const;
  /// What runs the body, decided once (lower/lowering.cpp).
  std::shared_ptr<const Lowering> lowering() const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, Gradient> gradients_;
  mutable std::shared_ptr<const Lowering> lowering_;
};
using PlanPtr = std::shared_ptr<const Plan>;

/// The plan of a loop with this body: one that was made before, or a new one. Consts that the traced function made
/// itself (body.consts) become part of the plan.
PlanPtr plan_of(Traced body, const Signature& signature, const ScanPasses& passes);

/// Callbacks for the loops that a thread plans and runs: a loop before its passes and after each one, whether that
/// changed it or not; then its plan, with the arguments of run_plan().
struct PlanWatch {
  std::function<void(const std::string& pass, const std::string& rule, const Loop& loop)> stage;
  std::function<void(const PlanPtr& plan, const Tensors& carries, const Tensors& xs, const Tensors& consts)> run;
};
/// The watch of this thread, or null. While there is one, no cached plan is used.
PlanWatch*& plan_watch();

/// How many plans this process has made so far.
std::int64_t plans_made();

/// Runs a planned loop: its prologue, the Scan op, its epilogue. Returns the epilogue's results.
Tensors run_plan(const PlanPtr& plan, const Tensors& carries, const Tensors& xs, const Tensors& consts,
                 const Loc& where);

}  // namespace reel
