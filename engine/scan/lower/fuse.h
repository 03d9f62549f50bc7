// Fuse: orders the nodes of a loop's body and fuses them into groups. Elementwise nodes of one shape become one pass
// over blocks that stay in the cache. All other nodes run alone and as early as possible, so that groups are large.
#pragma once
#include "engine/scan/lower/shard_batch.h"

namespace reel {

/// A node that runs alone, or elementwise nodes that are fused into one pass.
struct FusionGroup {
  std::vector<int> nodes;
  bool fused = false;
};

/// The nodes in topological order, grouped by what the backend `fuse` can fuse; null: nothing is fused.
std::vector<FusionGroup> fuse(const Program& body, const ShardPlan& rows, Backend* fuse);

/// Strides of an operand in a fusion group of shape `run`, whose last axis is the columns and whose other axes are the
/// rows; none if the operand does not broadcast in that way.
struct Strides {
  std::int64_t row, column;
};
std::optional<Strides> fused_steps(const Shape& operand, const Shape& run);

}  // namespace reel
