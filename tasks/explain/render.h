// An explanation as text, as a graph, as a page.
#pragma once
#include "tasks/explain/explanation.h"

namespace reel::explain {

/// Text for a terminal. With `pass`, the stages before and after this pass alone.
std::string text(const Explanation& explanation, const std::string& pass = "");

/// The graph of all loops for Graphviz: a cluster each for prologue, body and epilogue, groups coloured.
std::string dot(const Explanation& explanation);
/// The same of one stage of one loop: what moved is marked, or, as it `runs` in the end, with its groups.
std::string dot(const LoopReport& loop, const StageRows& stage, bool runs);

/// One page with everything: graphs (if `dot` of Graphviz is installed), stages with a slider, tables, and after a
/// measurement a roofline. It needs no other file and no network.
std::string html(const Explanation& explanation);

/// The roofline of measured groups as SVG; empty without measured times and rates.
std::string roofline(const Explanation& explanation);

/// "4 x add tanh": the ops of a group, with counts where there are many.
std::string ops_text(const GroupRow& group);
/// "the 20 rows of the batch are 2 shards of 10 rows"
std::string shards_text(const LoopReport& loop);

/// What the table of a loop's totals says.
struct Total {
  std::string what;
  Program::Cost once;   // of one evaluation
  double times = 1;     // how often it is evaluated
  double products = 0;  // operations of products in one evaluation
  double seconds = -1;  // of all evaluations; below 0: not measured
};
std::vector<Total> totals(const LoopReport& loop);
/// The least time that the products of the loop take at the rate; below 0: the rate is not known.
double bound_seconds(const LoopReport& loop, const Rates& rates);

}  // namespace reel::explain
