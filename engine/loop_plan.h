// What can be settled of a scan before its loop runs: the order of the calls and what is fused, which values are split
// by rows, calls that are done faster many times, and where states live.
#pragma once
#include "engine/rows.h"
#include "engine/scan.h"
#include "engine/schedule.h"

namespace reel {

/// What the threads of one run share; they do not change it.
struct LoopPlan {
  LoopPlan(const Scan& scan, Inputs in, std::span<Tensor> out);
  /// Adds up what the parts have of sums over the batch; to be called when all have run.
  void finish();

  const Scan& scan;
  const Program& body;
  Inputs in;
  std::span<Tensor> out;
  RowPlan rows;
  std::vector<Stage> stages;
  std::vector<Attrs> attrs;       // by node, of the calls that are made
  std::vector<Tensors> replaced;  // by node: arguments that take the place of the body's, where defined
  int parts = 1;                  // how many share the rows
  Tensors states;  // by carry: all values [T + 1, ...] in the order of time, or two used in turn [2, ...]; of a
                   // sum over the batch two for each part [parts, 2, ...]
  std::vector<char> placed;  // by slot: needs memory of its own, more than a block within a fused run

  /// Output y looks into the kept values of a carry, so that nothing need be written for it.
  bool is_view(int y) const {
    for (const Tensor& s : states) {
      if (out[ix(y)].storage() == s.storage()) return true;
    }
    return false;
  }
  bool is_partial(int carry) const { return rows.rows > 0 && rows.share[ix(carry)] == Share::partial; }
};

/// Rows first .. first + count - 1, the share of `part`; a count of 0 stands for values that are not split.
struct RowRange {
  std::int64_t first = 0, count = 0;
  int part = 0;
};

/// Runs these rows through all time steps.
void run_rows(const LoopPlan& plan, RowRange range);

}  // namespace reel
