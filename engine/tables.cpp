// Tables: symbols are few, so rows that a step looks up by symbol come from a table of few rows. What is done to each
// row by itself is then done to the table, once, before the loop; its result is looked up instead. Of a network that
// sees nothing but the symbol, the lookup is all that is left.
#include <algorithm>
#include <utility>

#include "engine/scan.h"

namespace reel {

namespace {

/// A value inside the loop as rows of a table outside of it.
struct Rows {
  Tensor table;
  const Program::Node* lookup = nullptr;  // how they are looked up, and by what; null: the value is no such thing
};

class Tables {
 public:
  explicit Tables(const ScanCall& call) : call_(call), body_(call.body), rows_(call.body.slots.size()) {
    for (const Program::Node& node : body_.nodes) {
      if (starts(node))
        rows_[ix(node.out)] = {outside(node.in[0]), &node};
      else
        rows_[ix(node.out)] = on_table(node);
      found_ = found_ || rows_[ix(node.out)].lookup;
    }
  }
  bool found() const { return found_; }

  /// The body with lookups as late as they can be.
  Traced rewritten() const {
    const std::vector<Spec> specs(body_.slots.begin(), body_.slots.begin() + body_.inputs);
    return trace(specs, [&](const Tensors& in) {
      Tensors value = in;
      value.insert(value.end(), call_.captures.begin(), call_.captures.end());
      value.resize(body_.slots.size());
      const auto make = [&](int s) {
        const auto& [table, lookup] = rows_[ix(s)];
        if (lookup && !value[ix(s)].defined())
          value[ix(s)] = apply(*lookup->op, lookup->attrs, {&table, &value[ix(lookup->in[1])]}, lookup->where);
      };
      for (const Program::Node& node : body_.nodes) {
        if (rows_[ix(node.out)].lookup) continue;
        for (int s : node.in) make(s);
        apply_node(node, value);
      }
      Tensors out;
      for (int s : body_.outputs) {
        make(s);
        out.push_back(value[ix(s)]);
      }
      return out;
    });
  }

 private:
  const Tensor& outside(int slot) const { return call_.captures[ix(slot - body_.inputs)]; }

  /// A lookup by what comes in, in a table with fewer rows than the steps look up in all.
  bool starts(const Program::Node& node) const {
    if (!node.op->looks_up || !body_.is_capture(node.in[0]) || body_.is_capture(node.in[1])) return false;
    if (!node.op->looks_up(node.attrs, pointers(body_.stand_ins(node))) || node.in[1] >= body_.inputs) return false;
    return 2 * outside(node.in[0]).dim(0) <= call_.length * body_.slots[ix(node.in[1])].shape.numel();
  }

  /// The result of a node that acts on each row by itself, as rows of its result on the table.
  Rows on_table(const Program::Node& node) const {
    const Program::Node* lookup = nullptr;
    std::int64_t count = 0;  // rows of the table
    std::vector<const Tensor*> in;
    Varying split;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      const Rows& rows = rows_[ix(s)];
      if (!rows.lookup && !body_.is_capture(s)) return {};
      if (rows.lookup && lookup && lookup->in[1] != rows.lookup->in[1]) return {};
      if (rows.lookup) {
        lookup = rows.lookup;
        count = rows.table.dim(0);
        split.set(k);
      }
      in.push_back(rows.lookup ? &rows.table : &outside(s));
    }
    if (!lookup || node.outs != 1 || !node.op->rows) return {};
    if (!node.op->rows(node.attrs, pointers(body_.stand_ins(node)), split)) return {};
    Shape shape = body_.slots[ix(node.out)].shape;
    shape.set(0, count);
    try {
      const Tensor table = apply(*node.op, node.attrs, in, node.where);
      if (table.shape() == shape) return {table, lookup};
    } catch (const Error&) {  // its attributes name the extent of the batch
    }
    return {};
  }

  const ScanCall& call_;
  const Program& body_;
  std::vector<Rows> rows_;  // by slot
  bool found_ = false;
};

}  // namespace

void tables(ScanCall& call) {
  const auto looks_up = [](const Program::Node& node) { return node.op->looks_up != nullptr; };
  if (std::none_of(call.body.nodes.begin(), call.body.nodes.end(), looks_up)) return;
  const bool inputs = std::exchange(call.passes.hoist_inputs, false);
  hoist(call);  // so that what is made of captures alone is a capture
  call.passes.hoist_inputs = inputs;
  const Tables plan(call);
  if (!plan.found()) return;
  Traced rest = plan.rewritten();
  call.body = std::move(rest.program);
  call.captures = std::move(rest.captures);
}

}  // namespace reel
