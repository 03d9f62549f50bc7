// How a kernel of a whole loop shares out its work, and where its values live meanwhile.
//
// A block of threads has some rows of the batch for all steps. Where elements meet along their row only (rolls,
// rotations), it has all columns, and its threads wait for each other. Products want their weights in registers; when
// these are more than one block has, the columns are shared out among the blocks of a group, each of which keeps its
// slice of the weights, and the blocks wait for each other, too.
#pragma once
#include "backends/cuda/loop_values.h"

namespace reel::cuda {

/// What there is of a GPU.
struct LoopLimits {
  int processors = 132;          // blocks that run at the same time, one on each
  std::int64_t shared = 225280;  // bytes of shared memory of a block
  std::int64_t weights = 576;    // bytes of a thread's registers for weights
};

/// Does each step have a place of its own?
inline bool is_slab(const LoopWalk& walk) { return walk.stride != 0 && !walk.turns; }

/// How an operand of a call is read.
enum class Reading {
  memory,     // made by no step
  register_,  // by the thread that made it
  tile,       // a product's, in the block's slice
  shared,     // by other threads
};

/// Where a value lives.
struct Room {
  bool in_register = false;  // of the thread that makes it
  bool shared = false;       // others read it: in shared memory, or by way of memory when they are of other blocks
  bool tile = false;         // a product's: what the block has of it, in shared memory
  bool before = false;       // the next step reads it
  int versions = 1;          // in shared memory: 2 if it is made while others still read that of the step before
  int planes = 1;            // of a tile: parts of a sum, to be added by who reads it
  std::int64_t pitch = 0;    // of rows in shared memory, in elements
  std::int64_t shared_at = 0, tile_at = 0;  // bytes into the shared memory
  std::int64_t scratch_at = -1;             // not below 0: bytes into the scratch memory, where it is twice
};

/// Products of one factor, done together: their columns side by side.
struct ProductGroup {
  std::vector<int> calls;
  int warps_along = 1;        // how many warps share the sums of a column
  int columns = 1;            // of a warp
  int vectors = 1;            // of 16 bytes, of a column's weights in a thread
  int rows = 1;               // that a warp does at a time, a power of two
  std::int64_t pitch = 0;     // of the rows of the factor in shared memory
  std::int64_t arena_at = 0;  // bytes into it, where the factor comes from other blocks
};

/// Calls that run one after another without waiting.
struct LoopStage {
  enum class Wait { none, block, group } wait = Wait::none;  // before it
  int call = -1;                                             // an elementwise one, or
  std::vector<ProductGroup> groups = {};                     // products
  bool is_products() const { return call < 0; }
  /// All of its calls.
  std::vector<int> calls() const;
};

struct LoopLayout {
  int threads = 0;
  std::int64_t groups = 1, slices = 1;  // blocks: of rows, and of columns in each
  std::int64_t rows = 1, chunk = 1;     // of a block; of those, how many a product has in shared memory at a time
  std::int64_t rows_in_shared = 1;      // of a block: some more where products do several at a time
  std::int64_t bytes = 0;               // of shared memory
  std::int64_t scratch = 0;             // bytes of memory: values that others read while the next are made
  int waits = 0;                        // of a group, in a step
  std::vector<std::vector<Reading>> readings;  // by call, by operand
  std::vector<Room> rooms;                     // by value
  std::vector<LoopStage> stages;
  std::int64_t blocks() const { return groups * slices; }
  /// Columns of a block of a value or call that has so many.
  std::int64_t slice(std::int64_t columns) const { return (columns + slices - 1) / slices; }
  /// Columns that a thread has of a call's.
  std::int64_t lanes(std::int64_t columns) const { return (rows * slice(columns) + threads - 1) / threads; }
};

/// Nothing, where a loop does not fit into one kernel, or would gain nothing by it.
std::optional<LoopLayout> lay_out_loop(const LoopValues& loop, const LoopLimits& limits);

}  // namespace reel::cuda
