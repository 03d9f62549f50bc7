// Fuse: which nodes of a loop's body run together. Elementwise nodes of one shape become one pass over blocks that stay
// in the cache; all others run by themselves, as early as they can, so that the runs between them are long.
#pragma once
#include "engine/rows.h"

namespace reel {

/// Nodes that run at the same time: one, or a fused run of several.
struct Stage {
  std::vector<int> nodes;
  bool fused = false;
};

/// The nodes in an order that respects who needs whom, in runs of what `fuse` can run together; null: by themselves.
std::vector<Stage> schedule(const Program& body, const RowPlan& rows, Backend* fuse);

/// Steps from row to row and from column to column of an operand in a fused run, whose last axis are the columns and
/// whose others are the rows: none when it does not go with that.
struct Strides {
  std::int64_t row, column;
};
std::optional<Strides> fused_steps(const Shape& operand, const Shape& run);

}  // namespace reel
