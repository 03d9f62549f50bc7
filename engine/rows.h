// Rows: the usual step treats each row of the batch by itself. Then a thread can take its rows through all time steps
// without waiting for another, and finds its state and its part of the work in its own caches.
#pragma once
#include "engine/program.h"

namespace reel {

/// Which values of a loop's body have the batch as axis 0.
struct RowPlan {
  std::int64_t rows = 0;           // the size of the batch; 0: the body mixes rows, so that they cannot be taken apart
  std::vector<char> split;         // by slot
  std::vector<Varying> arguments;  // by node: the inputs of which it is given its rows only
  static RowPlan none(const Program& body) {
    return {0, std::vector<char>(body.slots.size(), 0), std::vector<Varying>(body.nodes.size())};
  }
};

/// The first `carries` inputs of the body are its state, which has the batch as axis 0.
RowPlan plan_rows(const Program& body, int carries);

}  // namespace reel
