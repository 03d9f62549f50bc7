#include "engine/rows.h"

#include <algorithm>

namespace reel {

namespace {

/// Stand-ins for the values of a program, as ops look at their inputs' shapes.
Tensors shapes_of(const Program& body) {
  Tensors values;
  values.reserve(body.slots.size());
  for (const Spec& s : body.slots) values.push_back(Tensor::abstract(s));
  return values;
}

}  // namespace

RowPlan plan_rows(const Program& body, int carries, int sums) {
  const RowPlan none = RowPlan::none(body);
  RowPlan plan = none;
  if (carries == 0 || body.slots[0].shape.rank() == 0) return none;
  const std::int64_t rows = body.slots[0].shape[0];
  const auto has_rows = [&](int slot) {
    const Shape& shape = body.slots[ix(slot)].shape;
    return shape.rank() > 0 && shape[0] == rows;
  };
  const auto sum_carry = [&](int i) { return i >= carries - sums && i < carries; };
  // A sum is told from a value with rows by how it comes about, not by its shape, which may happen to be the same.
  for (int i = 0; i < body.inputs; ++i) {
    if (i < carries && !sum_carry(i) && !has_rows(i)) return none;
    if (!sum_carry(i) && has_rows(i)) plan.share[ix(i)] = Share::rows;
  }
  const Tensors values = shapes_of(body);
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    Varying split, perhaps;  // a capture as long as the batch may be one for each row, or something else of that length
    std::vector<const Tensor*> in;
    bool partial = false, all_partial = true;
    const auto running = std::find_if(node.in.begin(), node.in.end(), sum_carry);
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      in.push_back(&values[ix(s)]);
      const Share share = plan.share[ix(s)];
      if (share == Share::rows) split.set(k);
      if (share == Share::rows || (body.is_capture(s) && has_rows(s))) perhaps.set(k);
      partial = partial || share == Share::partial;
      all_partial = all_partial && share == Share::partial;
    }
    if (running != node.in.end()) {  // the running sum plus one of its kind; nothing else may look at it
      const int carry = *running, other = node.in[0] == carry ? node.in.back() : node.in[0];
      const Share kind = plan.share[ix(other)];
      if (!node.op->traits.linear || node.in.size() != 2 || kind == Share::whole ||
          body.outputs[ix(carry)] != node.out || (kind == Share::rows && !has_rows(carry)))
        return none;
      plan.share[ix(carry)] = plan.share[ix(node.out)] = kind;
      if (kind == Share::rows) plan.arguments[i].set(0), plan.arguments[i].set(1);
      continue;
    }
    if (partial && (!all_partial || !node.op->traits.linear)) return none;
    if (!split.any()) {  // the same for all rows: each thread makes its own
      if (partial) std::fill_n(plan.share.begin() + node.out, node.outs, Share::partial);
      continue;
    }
    const auto works = [&](Varying v) { return node.op->rows && node.op->rows(node.attrs, in, v); };
    Share result = Share::rows;
    plan.arguments[i] = works(split) ? split : perhaps;
    if (!works(plan.arguments[i])) {
      if (!node.op->sums_rows || !node.op->sums_rows(node.attrs, in, split)) return none;
      plan.arguments[i] = split;
      result = Share::partial;
    }
    for (int s = node.out; s < node.out + node.outs; ++s) {
      if (result == Share::rows && !has_rows(s)) return none;
      plan.share[ix(s)] = result;
    }
  }
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const int s = body.outputs[i];
    const bool sum = sum_carry(static_cast<int>(i));
    const bool split = plan.share[ix(s)] == Share::rows || (body.maker(s) < 0 && has_rows(s));
    const bool summed = sum && plan.share[ix(s)] == Share::partial && plan.share[i] == Share::partial;
    if (!split && !summed) return none;
    if (sum && plan.share[i] == Share::whole) return none;
  }
  plan.rows = rows;
  return plan;
}

}  // namespace reel
