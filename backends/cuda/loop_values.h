// What a step of a loop makes, and where it reads that: in the same step, or in the next one.
#pragma once
#include "backends/cuda/loop_notes.h"

namespace reel::cuda {

/// A value [rows, width] that a step makes, at once or in parts side by side.
struct LoopValue {
  LoopWalk walk;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  std::vector<int> writers;  // calls
};

/// What an operand of a call is.
struct Source {
  int value = -1;           // -1: no step makes it
  bool before = false;      // that of the step before
  std::int64_t offset = 0;  // where in the value's rows it begins
  bool made() const { return value >= 0; }
};

struct LoopValues {
  std::vector<LoopCall> calls;
  std::vector<std::vector<Source>> sources;  // by call, by operand
  std::vector<LoopValue> values;
  std::int64_t rows = 0;

  bool writes(std::size_t call, std::size_t operand) const;
  const Source& source(std::size_t call, std::size_t operand) const { return sources[call][operand]; }
  /// Is it made by a product?
  bool from_product(int value) const {
    const LoopValue& v = values[static_cast<std::size_t>(value)];
    return calls[static_cast<std::size_t>(v.writers[0])].kind == LoopCall::Kind::product;
  }
};

/// Nothing, where calls are on different rows, or read what they write in ways that are not known.
std::optional<LoopValues> find_values(std::vector<LoopCall> calls, std::int64_t steps);

}  // namespace reel::cuda
