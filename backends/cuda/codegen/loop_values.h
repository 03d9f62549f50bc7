// The values that a step of a loop produces, and where they are read: in the same step or in the next.
#pragma once
#include "backends/cuda/codegen/step_calls.h"

namespace reel::cuda {

/// A value [rows, width] that a step produces, in one piece or as adjacent column ranges.
struct LoopValue {
  Operand walk;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  std::vector<int> writers;  // calls
};

/// Where an operand's value comes from.
struct Source {
  int value = -1;           // -1: not produced in the loop
  bool before = false;      // the previous step's value
  std::int64_t offset = 0;  // first column in the value's rows
  bool made() const { return value >= 0; }
};

struct LoopValues {
  std::vector<StepCall> calls;
  std::vector<std::vector<Source>> sources;  // by call, by operand
  std::vector<LoopValue> values;
  std::int64_t rows = 0;
  int scratch = -1;  // the buffer that nobody reads after the loop

  bool writes(std::size_t call, std::size_t operand) const;
  const Source& source(std::size_t call, std::size_t operand) const { return sources[call][operand]; }
  /// The call that computes it, or its first columns.
  const StepCall& maker(int value) const {
    return calls[static_cast<std::size_t>(values[static_cast<std::size_t>(value)].writers[0])];
  }
};

/// Returns nothing if calls read what they write in an unsupported way.
std::optional<LoopValues> find_values(std::vector<StepCall> calls, const LoweredLoop& loop);

}  // namespace reel::cuda
