#include "engine/rows.h"

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

RowPlan plan_rows(const Program& body, int carries) {
  RowPlan plan = RowPlan::none(body);
  if (carries == 0 || body.slots[0].shape.rank() == 0) return plan;
  const std::int64_t rows = body.slots[0].shape[0];
  const auto has_rows = [&](int slot) {
    const Shape& shape = body.slots[ix(slot)].shape;
    return shape.rank() > 0 && shape[0] == rows;
  };
  for (int s = 0; s < body.inputs; ++s) {
    plan.split[ix(s)] = has_rows(s);
    if (s < carries && !has_rows(s)) return RowPlan::none(body);
  }
  const Tensors values = shapes_of(body);
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    Varying known, perhaps;  // a capture as long as the batch may be one for each row, or something else of that length
    std::vector<const Tensor*> in;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      in.push_back(&values[ix(s)]);
      const bool capture = s >= body.inputs && s < body.inputs + body.captures;
      if (plan.split[ix(s)]) known.set(k);
      if (plan.split[ix(s)] || (capture && has_rows(s))) perhaps.set(k);
    }
    if (!known.any()) continue;  // the same for all rows: each thread makes its own
    const auto works = [&](Varying split) { return node.op->rows && node.op->rows(node.attrs, in, split); };
    plan.arguments[i] = works(known) ? known : perhaps;
    if (!works(plan.arguments[i])) return RowPlan::none(body);
    for (int s = node.out; s < node.out + node.outs; ++s) {
      if (!has_rows(s)) return RowPlan::none(body);
      plan.split[ix(s)] = 1;
    }
  }
  for (int s : body.outputs) {
    if (!has_rows(s) || (body.maker(s) >= 0 && !plan.split[ix(s)])) return RowPlan::none(body);
  }
  plan.rows = rows;
  return plan;
}

}  // namespace reel
