// Shards the batch: most steps treat each row of the batch independently. Then each thread runs its shard through all
// time steps without waiting for the others, and its state and working set stay in its own caches.
#pragma once
#include "engine/scan/program.h"

namespace reel {

/// How a value of a loop's body is distributed over the threads.
enum class Placement : std::uint8_t {
  replicated,  // the same for all rows
  sharded,     // has the batch as axis 0; each thread has its rows
  partial,     // a sum over the batch; each thread has the sum over its rows
};

struct ShardPlan {
  std::int64_t rows = 0;             // the batch size; 0: the body mixes rows, so the batch cannot be sharded
  std::vector<Placement> placement;  // by id
  std::vector<Mapped> arguments;     // by node: the inputs that are passed as this shard's rows
  static ShardPlan none(const Program& body) {
    return {0, std::vector<Placement>(body.values.size(), Placement::replicated),
            std::vector<Mapped>(body.nodes.size())};
  }
};

/// The first `carries` inputs of the body are its state, which has the batch as axis 0, except that the last
/// `accumulators` of them may be sums over the batch.
ShardPlan shard_batch(const Program& body, int carries, int accumulators);

}  // namespace reel
