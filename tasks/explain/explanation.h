// What can be said of a step: its loops after each pass, what they keep, compute, read and write, how they run, and
// how long that takes. All renderers (render.h) read it.
#pragma once
#include "tasks/explain/names.h"
#include "tasks/explain/rates.h"

namespace reel::explain {

/// A value that the forward loop saves for the gradient, and what it would cost to compute it there again.
struct KeptRow {
  std::string name, op;
  double bytes = 0;        // a step
  double save_price = 0;   // in additions, as rematerialize counts (CostModel)
  double again_flops = 0;  // of all ops that would have to run again
  std::size_t again_ops = 0;
};

/// Ops of the body that run together, in the order in which they run.
struct GroupRow {
  bool fused = false;
  std::vector<std::string> names{}, ops{};
  double flops = 0, bytes = 0;  // of all rows; bytes: what the group reads from others and leaves to others
  double product_flops = 0;     // of matrix products
  std::size_t first_call = 0, end_call = 0;
  double seconds = -1;  // of all steps and shards; below 0: not measured
  std::vector<int> nodes{};
};

/// A kernel call of a step.
struct CallRow {
  std::string kernel, sizes;
  int group = -1;  // -1: a copy behind the groups
};

/// An array that the calls read or write.
struct BufferRow {
  std::string kind, name;  // "state", "h"
  double bytes = 0;        // of all rows; below 0: not known
  std::string moves;       // how its address changes from step to step
};

struct LoopReport {
  std::string title;
  Signature signature;  // after the passes
  std::vector<StageRows> stages;

  double states_bytes = 0;  // a step: of the states, which are kept anyway where a gradient may follow
  std::vector<KeptRow> kept;
  double again_flops = 0;  // a step: of what the gradient computes again
  std::size_t again_ops = 0;

  std::int64_t batch = 0;            // rows; 0: the batch is not sharded
  std::vector<std::int64_t> shards;  // rows of each
  std::vector<GroupRow> groups;
  std::vector<CallRow> calls;
  std::size_t setup_calls = 0;
  std::vector<BufferRow> buffers;
  double copies_seconds = -1;
  std::vector<double> prologue_seconds, epilogue_seconds;  // by node; empty: not measured

  Program::Cost prologue, step, epilogue;
  double prologue_products = 0, step_products = 0, epilogue_products = 0;  // operations of matrix products

  /// Of all time steps, with prologue and epilogue.
  Program::Cost whole() const;
  double products() const;
  /// Seconds; below 0: not measured.
  double body_seconds() const;
  double seconds() const;
};

struct Explanation {
  std::string title;               // "lstm, 32 units"
  std::vector<std::string> facts;  // a line each
  std::vector<LoopReport> loops;
  Rates rates;
  std::vector<std::string> source_folders = {};  // where lines of source may be found, besides those of the tree
};

/// The report of loops that ran one after the other. `names` are those of a forward loop's arguments; a gradient's
/// states are called like those of the forward loop, with a d before.
Explanation explain_loops(const std::string& title, const std::vector<WatchedLoop>& loops, const ArgumentNames& names);

/// "2.6 Mflop", "640 B", "0.31 ms"; nothing for 0, and for a time below 0.
std::string flops_text(double flops);
std::string bytes_text(double bytes);
std::string milliseconds_text(double seconds);

}  // namespace reel::explain
