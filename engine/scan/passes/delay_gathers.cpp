// Delays gathers: f(table[i]) = f(table)[i] for row-wise f, and the table has fewer rows than all steps gather. So f
// runs on the table, once before the loop, and the loop gathers from the result. If the input is nothing but a symbol,
// only the gather is left of the whole input layer.
#include <algorithm>
#include <utility>

#include "engine/scan/scan.h"

namespace reel {

namespace {

/// A value inside the loop as gathered rows of a table outside of it.
struct Rows {
  Tensor table;
  const Program::Node* lookup = nullptr;  // the gather and its index; null: the value is not gathered
};

class GatherDelayer {
 public:
  explicit GatherDelayer(const ScanCall& call) : call_(call), body_(call.body), rows_(call.body.values.size()) {
    for (const Program::Node& node : body_.nodes) {
      if (starts(node))
        rows_[node.out] = {outside(node.in[0]), &node};
      else
        rows_[node.out] = on_table(node);
      found_ = found_ || rows_[node.out].lookup;
    }
  }
  bool found() const { return found_; }

  /// The body with gathers as late as possible.
  Traced rewritten() const {
    const std::vector<Spec> specs(body_.values.begin(), body_.values.begin() + body_.inputs);
    return trace(specs, [&](const Tensors& in) {
      Tensors value = in;
      value.insert(value.end(), call_.consts.begin(), call_.consts.end());
      value.resize(body_.values.size());
      const auto make = [&](int s) {
        const auto& [table, lookup] = rows_[s];
        if (lookup && !value[s].defined())
          value[s] = apply(*lookup->op, lookup->attrs, {&table, &value[lookup->in[1]]}, lookup->where);
      };
      for (const Program::Node& node : body_.nodes) {
        if (rows_[node.out].lookup) continue;
        for (int s : node.in) make(s);
        apply_node(node, value);
      }
      Tensors out;
      for (int s : body_.outputs) {
        make(s);
        out.push_back(value[s]);
      }
      return out;
    });
  }

 private:
  const Tensor& outside(int id) const { return call_.consts[id - body_.inputs]; }

  /// Is it a gather from a const table by an input, where all steps together gather at least twice the table's rows?
  bool starts(const Program::Node& node) const {
    if (!node.op->is_gather || !body_.is_const(node.in[0]) || body_.is_const(node.in[1])) return false;
    if (!node.op->is_gather(node.attrs, pointers(body_.abstract_inputs(node))) || node.in[1] >= body_.inputs)
      return false;
    return 2 * outside(node.in[0]).dim(0) <= call_.length * body_.values[node.in[1]].shape.numel();
  }

  /// For a row-wise node: applies it to the table, so that its result is gathered from that. Otherwise {}.
  Rows on_table(const Program::Node& node) const {
    const Program::Node* lookup = nullptr;
    std::int64_t count = 0;  // rows of the table
    std::vector<const Tensor*> in;
    Mapped sharded;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      const Rows& rows = rows_[s];
      if (!rows.lookup && !body_.is_const(s)) return {};
      if (rows.lookup && lookup && lookup->in[1] != rows.lookup->in[1]) return {};
      if (rows.lookup) {
        lookup = rows.lookup;
        count = rows.table.dim(0);
        sharded.set(k);
      }
      in.push_back(rows.lookup ? &rows.table : &outside(s));
    }
    if (!lookup || node.num_outputs != 1 || !node.op->shards_rows) return {};
    if (!node.op->shards_rows(node.attrs, pointers(body_.abstract_inputs(node)), sharded)) return {};
    Shape shape = body_.values[node.out].shape;
    shape.set(0, count);
    try {
      const Tensor table = apply(*node.op, node.attrs, in, node.where);
      if (table.shape() == shape) return {table, lookup};
    } catch (const Error&) {  // its attributes fix the batch size
    }
    return {};
  }

  const ScanCall& call_;
  const Program& body_;
  std::vector<Rows> rows_;  // by id
  bool found_ = false;
};

}  // namespace

void delay_gathers(ScanCall& call) {
  const auto is_gather = [](const Program::Node& node) { return node.op->is_gather != nullptr; };
  if (std::none_of(call.body.nodes.begin(), call.body.nodes.end(), is_gather)) return;
  const bool inputs = std::exchange(call.passes.hoist_inputs, false);
  hoist(call);  // so that what depends only on consts becomes a const
  call.passes.hoist_inputs = inputs;
  const GatherDelayer plan(call);
  if (!plan.found()) return;
  Traced rest = plan.rewritten();
  call.body = std::move(rest.program);
  call.consts = std::move(rest.consts);
}

}  // namespace reel
