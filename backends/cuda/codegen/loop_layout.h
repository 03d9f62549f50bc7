// How a loop kernel divides its work among threads, and where its values are stored meanwhile.
//
// A thread block keeps some rows of the batch for all steps. If elements interact only along their row (rolls,
// rotations), the block has all columns, and its threads synchronize with barriers. Products keep their weights in
// registers, and what these cannot hold in shared memory. If the weights exceed that, the columns are divided among the
// blocks of a group: each block keeps its slice of the weights in registers, and barriers synchronize the group's
// blocks, too.
#pragma once
#include "backends/cuda/codegen/loop_costs.h"
#include "backends/cuda/codegen/loop_values.h"

namespace reel::cuda {

/// The limits of a GPU.
struct LoopLimits {
  int processors = 132;                  // multiprocessors (SMs): one block runs on each
  std::int64_t shared = 225280;          // bytes of shared memory per block
  std::int64_t weights = 576;            // bytes of registers per thread for weights
  std::int64_t shared_weights = 225280;  // bytes of shared memory per block for weights, where a block has all columns
  int tensor_products = 0;  // of tf32 that make a product of f32 on tensor cores: 1 or 3; 0: no tensor cores
  bool always = false;      // one kernel wherever a loop fits into one, even if it is expected to be slower
  LoopCosts costs = {};
};

/// Is the value stacked [T, ...], with memory of its own for each step?
inline bool is_slab(const Operand& walk) { return walk.stride != 0 && !walk.double_buffered; }

/// How a call reads an operand.
enum class ReadPath {
  memory,     // from global memory: no step produces it
  register_,  // from the register of the thread that computed it
  tile,       // from the block's slice of a product's result
  shared,     // from shared memory or other blocks: other threads computed it
};

/// Where a value is stored.
struct ValueStorage {
  bool in_register = false;  // of the thread that computes it
  bool shared = false;       // other threads read it: in shared memory, or through global memory for other blocks
  bool tile = false;         // a product's result: the block's slice of it, in shared memory
  bool before = false;       // the next step reads it
  int versions = 1;          // in shared memory: 2 (double-buffered) if it is computed while the last step's is read
  int planes = 1;            // of a tile: partial sums, added by the reader
  std::int64_t pitch = 0;    // of rows in shared memory, in elements
  std::int64_t shared_at = 0, tile_at = 0;  // byte offsets in shared memory
  std::int64_t scratch_at = -1;             // if >= 0: byte offset in scratch memory, double-buffered
};

/// Products with the same left factor, computed together with their columns side by side; or with several left factors
/// of one width, each of which has its share of the warps.
struct ProductGroup {
  std::vector<int> calls;  // factor by factor, equally many each
  int factors = 1;
  int warps_along = 1;           // number of warps that share a column's sum
  int columns = 1;               // per warp
  int vectors = 1;               // of 16 bytes: weights in each thread, of a column, or of eight on tensor cores
  int rows = 1;                  // that a warp computes at a time, a power of two
  int tensor_products = 0;       // by tensor cores if > 0, as LoopLimits
  std::int64_t terms = 0;        // of a column's sum, rounded up to what its warps take
  std::int64_t pitch = 0;        // of the factor's rows in shared memory
  std::int64_t arena_at = 0;     // byte offset in the arena, if other blocks computed the factors
  std::int64_t weights_at = -1;  // if >= 0: byte offset of the weights in shared memory, else they are in registers
  double cycles = 0;             // of an SM, per row: an estimate
  std::size_t calls_per_factor() const { return calls.size() / static_cast<std::size_t>(factors); }
  /// A call with the f-th factor.
  int first(int f = 0) const { return calls[static_cast<std::size_t>(f) * calls_per_factor()]; }
  /// Of all weights in each thread.
  std::int64_t weight_bytes() const { return std::int64_t{16} * columns / (tensor_products > 0 ? 8 : 1) * vectors; }
};

/// Calls that run without a barrier between them.
struct LoopStage {
  enum class Wait { none, block, group } wait = Wait::none;  // the barrier before the stage
  int call = -1;                                             // an elementwise call, or
  std::vector<ProductGroup> groups = {};                     // products
  bool is_products() const { return call < 0; }
  /// All calls of the stage.
  std::vector<int> calls() const;
};

struct LoopLayout {
  int threads = 0;
  std::int64_t groups = 1, slices = 1;  // row groups of blocks, and column slices in each group
  std::int64_t rows = 1, chunk = 1;     // rows per block; rows of a product's factor in shared memory at a time
  std::int64_t rows_in_shared = 1;      // rows per block, rounded up to what products compute at a time
  std::int64_t bytes = 0;               // of shared memory
  std::int64_t transform_at = -1;       // byte offset of a transform's spare rows, and its roots of 1
  bool reads_ahead = true;              // inputs wait in registers for the next step
  std::int64_t scratch = 0;  // bytes of global memory for values that are read while the next ones are computed
  int barriers = 0;          // of a group, per step
  std::vector<std::vector<ReadPath>> read_paths;  // by call, by operand
  std::vector<ValueStorage> storage;              // by value
  std::vector<LoopStage> stages;
  std::int64_t blocks() const { return groups * slices; }
  /// Of all weights in each thread's registers.
  std::int64_t kept_bytes() const {
    std::int64_t out = 0;
    for (const LoopStage& stage : stages) {
      for (const ProductGroup& g : stage.groups) out += g.weights_at < 0 ? g.weight_bytes() : 0;
    }
    return out;
  }
  /// Columns per block, for a value or call with `columns` columns.
  std::int64_t slice(std::int64_t columns) const { return (columns + slices - 1) / slices; }
  /// Columns per thread, for a call with `columns` columns.
  std::int64_t lanes(std::int64_t columns) const { return (rows * slice(columns) + threads - 1) / threads; }
};

/// Returns nothing if a loop does not fit into one kernel, or would not run faster in one.
std::optional<LoopLayout> lay_out_loop(const LoopValues& loop, const LoopLimits& limits);

}  // namespace reel::cuda
