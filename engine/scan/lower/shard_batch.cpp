#include "engine/scan/lower/shard_batch.h"

#include <algorithm>

namespace reel {

ShardPlan shard_batch(const Program& body, int carries, int accumulators) {
  const ShardPlan none = ShardPlan::none(body);
  ShardPlan plan = none;
  if (carries == 0 || body.values[0].shape.rank() == 0) return none;
  const std::int64_t rows = body.values[0].shape[0];
  const auto has_rows = [&](int id) {
    const Shape& shape = body.values[id].shape;
    return shape.rank() > 0 && shape[0] == rows;
  };
  const auto sum_carry = [&](int i) { return i >= carries - accumulators && i < carries; };
  // Sums are recognised by how they are computed, not by their shape, which may happen to start with the batch size.
  for (int i = 0; i < body.inputs; ++i) {
    if (i < carries && !sum_carry(i) && !has_rows(i)) return none;
    if (!sum_carry(i) && has_rows(i)) plan.placement[i] = Placement::sharded;
  }
  Tensors values;
  for (const Spec& s : body.values) values.push_back(Tensor::abstract(s));
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    Mapped sharded, perhaps;  // perhaps: also consts whose axis 0 may be the batch, or just have the same extent
    std::vector<const Tensor*> in;
    bool partial = false, all_partial = true;
    const auto running = std::find_if(node.in.begin(), node.in.end(), sum_carry);
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      in.push_back(&values[s]);
      const Placement placement = plan.placement[s];
      if (placement == Placement::sharded) sharded.set(k);
      if (placement == Placement::sharded || (body.is_const(s) && has_rows(s))) perhaps.set(k);
      partial = partial || placement == Placement::partial;
      all_partial = all_partial && placement == Placement::partial;
    }
    if (running != node.in.end()) {  // a running sum may only be added to, by a value of the same placement
      const int carry = *running, other = node.in[0] == carry ? node.in.back() : node.in[0];
      const Placement kind = plan.placement[other];
      if (!node.op->traits.linear || node.in.size() != 2 || kind == Placement::replicated ||
          body.outputs[carry] != node.out || (kind == Placement::sharded && !has_rows(carry)))
        return none;
      plan.placement[carry] = plan.placement[node.out] = kind;
      if (kind == Placement::sharded) plan.arguments[i].set(0), plan.arguments[i].set(1);
      continue;
    }
    if (partial && (!all_partial || !node.op->traits.linear)) return none;
    if (!sharded.any()) {  // the same for all rows: each thread computes its own copy
      if (partial) std::fill_n(plan.placement.begin() + node.out, node.num_outputs, Placement::partial);
      continue;
    }
    const auto works = [&](Mapped v) {
      return node.op->loop.shards_rows && node.op->loop.shards_rows(node.attrs, in, v);
    };
    Placement result = Placement::sharded;
    plan.arguments[i] = works(sharded) ? sharded : perhaps;
    if (!works(plan.arguments[i])) {
      if (!node.op->loop.reduces_rows || !node.op->loop.reduces_rows(node.attrs, in, sharded)) return none;
      plan.arguments[i] = sharded;
      result = Placement::partial;
    }
    for (int s : node.outputs()) {
      if (result == Placement::sharded && !has_rows(s)) return none;
      plan.placement[s] = result;
    }
  }
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const int s = body.outputs[i];
    const bool sum = sum_carry(static_cast<int>(i));
    const bool sharded = plan.placement[s] == Placement::sharded || (body.producer(s) < 0 && has_rows(s));
    const bool summed = sum && plan.placement[s] == Placement::partial && plan.placement[i] == Placement::partial;
    if (!sharded && !summed) return none;
    if (sum && plan.placement[i] == Placement::replicated) return none;
  }
  plan.rows = rows;
  return plan;
}

}  // namespace reel
