// A loop over time as a value: what runs once before it, its body, and what runs once after it. A pass is a function
// from Loop to Loop (passes/pipeline.cpp lists them); scan() traces a step, makes a loop of it, and runs it.
#pragma once
#include "engine/scan/program.h"

namespace reel {

/// The properties of a loop other than its programs.
struct Signature {
  int carries = 0;            // states that go from step to step; the body takes them first
  int accumulators = 0;       // the last so many carries are sums over time, which start at 0
  std::int64_t length = 0;    // the number of steps
  bool reverse = false;       // from the last time step to the first
  bool save_carries = false;  // a gradient may follow, and needs all states
  bool gradient = false;      // the loop computes the gradient of another one
  bool operator==(const Signature&) const = default;
};

/// Three programs. Prologue and epilogue are ordinary programs, run once by eval(), so their ops are recorded and
/// differentiated like any others.
struct Loop {
  Signature signature;
  /// (xs [T, ...], consts) -> (the body's xs [T, ...], the body's consts, further arguments of the epilogue)
  Traced prologue;
  /// (carries, one time step of each of xs; consts) -> (next carries, ys)
  Program body;
  /// (last carries, the prologue's further results, ys [T, ...]) -> the results. The body may have more ys than it
  /// takes.
  Traced epilogue;

  /// A loop whose prologue and epilogue only forward their inputs.
  static Loop of(Traced body, const Signature& signature);

  int xs() const { return body.inputs - signature.carries; }
  int ys() const { return static_cast<int>(body.outputs.size()) - signature.carries; }
  /// The number of results that the prologue passes to the epilogue.
  int passed() const { return static_cast<int>(prologue.program.outputs.size()) - xs() - body.consts; }
  /// The three programs as text, with what each call costs.
  std::string str() const;
};

/// The spec of all T values of a loop's input or output: [...] -> [T, ...].
inline Spec stacked(Spec spec, std::int64_t length) {
  spec.shape = spec.shape.insert(0, length);
  return spec;
}

/// A program followed by f, which receives its results.
Traced then(const Traced& first, const Function& f);

/// Traces a body: f receives abstract tensors of these specs, inputs first. The consts are consts of the program; after
/// them come those that f made itself, which are also the result's `consts`.
Traced trace_body(const std::vector<Spec>& inputs, const std::vector<Spec>& consts, const Function& f);

}  // namespace reel
