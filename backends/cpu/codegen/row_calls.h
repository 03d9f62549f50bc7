// The calls of a loop's step that treat each row of a batch by itself, and what they read and write for a row.
#pragma once
#include <optional>
#include <vector>

#include "engine/device/lowered_loop.h"

namespace reel::cpu {

/// Memory that a call reads or writes for a row of the batch.
struct RowAccess {
  std::size_t operand = 0;  // of the call
  Operand at;
  std::int64_t row = 0;    // bytes from a row to the next; 0: all rows use the same
  std::int64_t bytes = 0;  // of a row
  bool written = false;
  DType dtype = DType::f32;
  std::int64_t below = 0;  // what an index is less than
  std::int64_t end(std::int64_t rows) const { return at.offset + (rows - 1) * row + bytes; }
  bool same_memory(const RowAccess& other) const { return at == other.at && row == other.row && bytes == other.bytes; }
};

/// A fusion group, a rotation, a gather of rows, a segment sum, a sum of rows or a copy of parts of rows: rows one
/// after the other, or all at once.
struct RowCall {
  std::int64_t rows = 0;
  std::vector<RowAccess> accesses;  // reads, then writes
  std::int64_t work = 0;            // numbers of a row, times calls
};

/// None: the call does not treat rows by themselves, or too few numbers of each, or too many arrays. `scratch` is the
/// loop's buffer for values of a step.
std::optional<RowCall> row_call(const LoopCall& call, int scratch);

/// Can a call run on its first row before another one, which comes earlier in the step, runs on its second?
bool may_go_row_by_row(const RowCall& earlier, const RowCall& later);

}  // namespace reel::cpu
