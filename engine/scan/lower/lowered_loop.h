// A scan lowered for execution, decided once before its loop runs: the order of the calls, fusion groups, which values
// are sharded over the batch, prepacked calls, and the buffers of the states.
#pragma once
#include "engine/scan/lower/fuse.h"
#include "engine/scan/lower/shard_batch.h"
#include "engine/scan/scan.h"

namespace reel {

/// What is decided of a planned loop before its first run.
struct Lowering {
  explicit Lowering(const Plan& plan);

  ShardPlan rows;
  std::vector<FusionGroup> groups;
  std::vector<char> placed;  // by id: needs a buffer; others live in a block inside their fusion group
};

/// A lowered loop with its operands. Shared by all threads of one run, which only read it.
struct LoweredLoop {
  LoweredLoop(const Scan& scan, Inputs in, std::span<Tensor> out);
  /// Adds up the shards' partial sums over the batch. Call it after all shards have run.
  void finish();

  const Scan& scan;
  const Program& body;
  Inputs in;
  std::span<Tensor> out;
  std::shared_ptr<const Lowering> lowering;
  const ShardPlan& rows;
  const std::vector<FusionGroup>& groups;
  const std::vector<char>& placed;
  std::vector<Attrs> attrs;       // by node: of the original or the prepacked call
  std::vector<Tensors> replaced;  // by node: prepacked arguments; undefined: the body's argument
  int parts = 1;                  // number of shards of the batch
  Tensors states;                 // by carry: all values [T + 1, ...] in the order of time, or double-buffered
                                  // [2, ...]; a partial sum over the batch is double-buffered for each shard
                                  // [parts, 2, ...]

  /// Is output y a view of the saved values of a carry, so that it need not be written?
  bool is_view(int y) const {
    for (const Tensor& s : states) {
      if (out[y].storage() == s.storage()) return true;
    }
    return false;
  }
  bool is_partial(int carry) const { return rows.rows > 0 && rows.placement[carry] == Placement::partial; }
};

/// A shard of the batch: rows first .. first + count - 1. A count of 0 means that nothing is sharded.
struct Shard {
  std::int64_t first = 0, count = 0;
  int part = 0;
};

/// Runs one shard of the batch through all time steps.
void run_shard(const LoweredLoop& plan, Shard range);

}  // namespace reel
