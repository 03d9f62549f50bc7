#include "engine/scan/lower/lowering.h"

#include <algorithm>

namespace reel {

namespace {

/// By id: is the value read outside of its fusion group, or produced by a call that is not fused?
std::vector<char> placed_values(const Program& body, const std::vector<FusionGroup>& groups) {
  std::vector<char> placed(body.values.size(), 0);
  std::vector<std::size_t> group_of(body.nodes.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (int n : groups[g].nodes) group_of[n] = g;
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    if (!groups[group_of[i]].fused) std::fill_n(placed.begin() + node.out, node.num_outputs, 1);
    for (int s : node.in)
      if (const int made = body.producer(s); made >= 0 && group_of[made] != group_of[i]) placed[s] = 1;
  }
  for (int s : body.outputs) placed[s] = 1;
  return placed;
}

}  // namespace

Lowering::Lowering(const Plan& plan) : body(plan.loop.body), signature(plan.loop.signature) {
  Backend& backend = *body.values[0].backend;
  rows = plan.passes.shard_batch && backend.runs_in_blocks()
             ? shard_batch(body, signature.carries, signature.save_carries ? 0 : signature.accumulators)
             : ShardPlan::none(body);
  groups = fuse(body, rows, plan.passes.fuse ? &backend : nullptr);
  placed = placed_values(body, groups);
  // A call that accumulates adds its term to a sum over time in place, if nothing else reads the term or the new sum.
  term_of.assign(body.values.size(), -1);
  std::vector<int> reads(body.values.size(), 0);
  for (const Program::Node& node : body.nodes)
    for (int s : node.in) ++reads[s];
  for (int s : body.outputs) ++reads[s];
  for (int i = signature.carries - signature.accumulators; i < signature.carries; ++i) {
    const int sum = body.outputs[i], add = body.producer(sum), term = body.nodes[add].in[1];
    const int made = body.producer(term);
    if (places(i) > 1 || made < 0 || !body.nodes[made].op->traits.accumulates || reads[term] + reads[sum] > 2) continue;
    term_of[sum] = term;
    placed[sum] = 0;
    for (FusionGroup& group : groups) std::erase(group.nodes, add);
  }
  std::erase_if(groups, [](const FusionGroup& group) { return group.nodes.empty(); });
}

std::shared_ptr<const ShardLoop> Lowering::loop(std::int64_t shard_rows, const std::vector<char>& views,
                                                const std::vector<Prepacked>& prepacked) const {
  const std::lock_guard lock(mutex_);
  auto& loop = loops_[{shard_rows, views}];
  if (!loop) loop = lower_shard(*this, shard_rows, views, prepacked);
  return loop;
}

std::shared_ptr<const Lowering> Plan::lowering() const {
  const std::lock_guard lock(mutex_);
  if (!lowering_) lowering_ = std::make_shared<const Lowering>(*this);
  return lowering_;
}

}  // namespace reel
