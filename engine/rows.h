// Rows: the usual step treats each row of the batch by itself. Then a thread can take its rows through all time steps
// without waiting for another, and finds its state and its part of the work in its own caches.
#pragma once
#include "engine/program.h"

namespace reel {

/// How a value of a loop's body is shared out.
enum class Share : std::uint8_t {
  whole,    // the same for all rows
  rows,     // has the batch as axis 0: each thread has its rows
  partial,  // a sum over the batch: each thread has the sum over its rows
};

struct RowPlan {
  std::int64_t rows = 0;           // the size of the batch; 0: the body mixes rows, so that they cannot be taken apart
  std::vector<Share> share;        // by slot
  std::vector<Varying> arguments;  // by node: the inputs of which it is given its rows only
  static RowPlan none(const Program& body) {
    return {0, std::vector<Share>(body.slots.size(), Share::whole), std::vector<Varying>(body.nodes.size())};
  }
};

/// The first `carries` inputs of the body are its state, which has the batch as axis 0; but the last `sums` of them may
/// be sums over the batch.
RowPlan plan_rows(const Program& body, int carries, int sums);

}  // namespace reel
