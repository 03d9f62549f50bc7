// From a planned loop to kernel calls: the order of the calls, fusion groups, which values are sharded over the
// batch, and a LoweredLoop for each number of rows that a shard has. Kept with the plan, so done only once.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "engine/device/lowered_loop.h"
#include "engine/scan/lower/fuse.h"
#include "engine/scan/lower/shard_batch.h"
#include "engine/scan/scan.h"

namespace reel {

/// What a buffer of a lowered loop holds in a run.
struct LoopBuffer {
  enum class Kind : std::uint8_t {
    input,      // of the Scan op: `index` in its inputs
    output,     // of the Scan op
    state,      // all values of a carry [T + 1, ...] in the order of time, or double-buffered [2, ...]; a sum: [1, ...]
    prepacked,  // a const in the layout that a call reads fastest; `index` is the node
    scratch     // of one shard
  };
  Kind kind = Kind::scratch;
  int index = 0;
  int argument = 0;   // of the prepacked node
  bool rows = false;  // it starts at the shard's rows of the first time
  bool operator==(const LoopBuffer&) const = default;
};

struct ShardLoop {
  LoweredLoop loop;
  std::vector<LoopBuffer> buffers;
  std::vector<std::size_t> ends;  // by fusion group: where its calls end in the loop's
  std::size_t scratch = 0;        // bytes
};

/// A prepacked call: what runs in place of a node.
struct Prepacked {
  Attrs attrs;
  Tensors replaced;  // by argument; undefined: the body's
};

class Lowering {
 public:
  explicit Lowering(const Plan& plan);

  /// The loop for shards of `rows` rows of the batch; 0: nothing is sharded. `views`: by y of the Scan, is it a view of
  /// a carry's saved values, which need not be written twice? Specs and attributes of `prepacked` are the same in each
  /// run.
  std::shared_ptr<const ShardLoop> loop(std::int64_t rows, const std::vector<char>& views,
                                        const std::vector<Prepacked>& prepacked) const;

  const Program& body;
  const Signature& signature;
  ShardPlan rows;
  std::vector<FusionGroup> groups;
  std::vector<char> placed;  // by id: needs a buffer; others live in a block inside their fusion group
  std::vector<int> term_of;  // by id: the term that its own call adds to this sum, which no group does then; or -1

  bool is_sharded(int id) const { return rows.rows > 0 && rows.placement[id] == Placement::sharded; }
  bool is_partial(int carry) const { return rows.rows > 0 && rows.placement[carry] == Placement::partial; }
  /// How many values of a carry are kept. A sum over time is only added to: the new sum overwrites the old one.
  std::int64_t places(int carry) const {
    if (signature.save_carries) return signature.length + 1;
    return rows.rows > 0 && carry >= signature.carries - signature.accumulators ? 1 : 2;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::int64_t, std::vector<char>>, std::shared_ptr<const ShardLoop>> loops_;
};

/// Lowers a loop for one number of rows (lower_shard.cpp).
std::shared_ptr<const ShardLoop> lower_shard(const Lowering& lowering, std::int64_t rows,
                                             const std::vector<char>& views, const std::vector<Prepacked>& prepacked);

}  // namespace reel
