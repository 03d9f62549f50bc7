// The calls of a loop's step, as far as one kernel can make all of them: fusion groups, products, rotations, copies.
#pragma once
#include <optional>
#include <vector>

#include "engine/device/lowered_loop.h"

namespace reel::cuda {

/// Memory that a call reads or writes: element (r, c) lies r * row + c * column elements from the start.
struct Access {
  Operand walk;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row = 0, column = 1;  // 0: broadcast along that axis
  DType dtype = DType::f32;
  bool local = false;  // inside a fusion group, without memory
};

/// A call of a step, on the rows of a batch.
struct StepCall {
  enum class Kind { run, product, rotation, copy } kind = Kind::run;
  /// The operands. For a fusion group (run): all of the group, results included. For a product: a, b, out (a and out
  /// have the batch's rows, b is [columns, sums] or its transpose). For a rotation: x, out, and c and s unless it is
  /// only an exchange. For a copy: in, out.
  std::vector<Access> operands = {};
  std::vector<FusedCall> calls = {};               // run
  bool transposed = false;                         // product: b is [columns, sums]
  std::int64_t sums = 0;                           // product
  std::int64_t first = 0, last = 0, distance = 0;  // rotation
  std::int64_t rows() const { return operands[out()].rows; }
  std::int64_t columns() const { return operands[out()].columns; }
  /// The operand that is written; for a fusion group one of them.
  std::size_t out() const { return kind == Kind::run ? at(calls.back().out) : kind == Kind::product ? 2 : 1; }
  static std::size_t at(int operand) { return static_cast<std::size_t>(operand); }
};

/// The calls of a step; none if there is one that a loop kernel cannot make.
std::optional<std::vector<StepCall>> step_calls(const LoweredLoop& loop);

}  // namespace reel::cuda
