// Delays gathers: f(table[i]) = f(table)[i] for row-wise f, and the table has fewer rows than all steps gather. So f
// runs on the table, once before the loop, and the loop gathers from the result. If the input is nothing but a symbol,
// only the gather is left of the whole input layer.
#include <algorithm>

#include "engine/autodiff/primitives.h"
#include "engine/scan/passes/passes.h"

namespace reel {

namespace {

/// A value inside the loop as gathered rows of a table outside of it.
struct Rows {
  Spec table;
  const Program::Node* lookup = nullptr;  // the gather and its index; null: the value is not gathered
};

class GatherDelayer {
 public:
  GatherDelayer(const Program& body, const Signature& loop) : body_(body), loop_(loop), rows_(body.values.size()) {
    for (const Program::Node& node : body_.nodes) {
      rows_[node.out] = starts(node) ? Rows{body_.values[node.in[0]], &node} : on_table(node);
      if (rows_[node.out].lookup) tables.push_back(node.out);
    }
  }

  /// Ids of the values that are gathered from a table.
  std::vector<int> tables;
  const Spec& table(int id) const { return rows_[id].table; }

  /// The body with gathers as late as possible; the tables are further consts.
  Tensors late(const Tensors& in) const {
    const auto first_table = static_cast<std::size_t>(body_.inputs + body_.consts);
    Tensors value(in.begin(), in.begin() + body_.inputs + body_.consts);
    value.resize(body_.values.size());
    const auto make = [&](int s) {
      const Program::Node* lookup = rows_[s].lookup;
      if (!lookup || value[s].defined()) return;
      const auto k = static_cast<std::size_t>(std::find(tables.begin(), tables.end(), s) - tables.begin());
      value[s] = apply(*lookup->op, lookup->attrs, {&in[first_table + k], &value[lookup->in[1]]}, lookup->where);
    };
    for (const Program::Node& node : body_.nodes) {
      if (rows_[node.out].lookup) continue;
      for (int s : node.in) make(s);
      apply_node(node, value);
    }
    Tensors out;
    for (int s : body_.outputs) make(s), out.push_back(value[s]);
    return out;
  }

  /// The tables, made from the xs of all steps and the consts. f gets zeros for rows that no step gathers: if it
  /// overflows there, an infinite derivative times no gradient is NaN.
  Tensors made(std::span<const Tensor> given) const {
    Tensors value(body_.values.size()), out;
    std::copy(given.begin(), given.end(), value.begin() + loop_.carries);
    for (const Program::Node& node : body_.nodes) {
      if (!rows_[node.out].lookup) continue;
      const bool starts = rows_[node.out].lookup == &node;
      if (!starts) apply_node(node, value);
      out.push_back(value[starts ? node.in[0] : node.out]);
      if (starts) value[node.out] = primitive::named_rows(value[node.in[0]], value[node.in[1]]);
    }
    return out;
  }

 private:
  /// Is it a gather from a const table by an input, where all steps together gather at least twice the table's rows?
  bool starts(const Program::Node& node) const {
    if (!node.op->loop.is_gather || !body_.is_const(node.in[0])) return false;
    if (node.in[1] < loop_.carries || node.in[1] >= body_.inputs) return false;
    if (!node.op->loop.is_gather(node.attrs, pointers(body_.abstract_inputs(node)))) return false;
    return 2 * body_.values[node.in[0]].shape[0] <= loop_.length * body_.values[node.in[1]].shape.numel();
  }

  /// For a row-wise node of gathered rows: the table of its results. Otherwise {}. Rows that are never gathered are
  /// zeros, which the op must take: sqrt's infinite derivative there times no gradient is NaN.
  Rows on_table(const Program::Node& node) const {
    const Program::Node* lookup = nullptr;
    std::int64_t count = 0;  // rows of the table
    Tensors in;
    Mapped sharded;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const Rows& rows = rows_[node.in[k]];
      if (!rows.lookup && !body_.is_const(node.in[k])) return {};
      if (rows.lookup && lookup && lookup->in[1] != rows.lookup->in[1]) return {};
      if (rows.lookup) {
        lookup = rows.lookup;
        count = rows.table.shape[0];
        sharded.set(k);
      }
      in.push_back(Tensor::abstract(rows.lookup ? rows.table : body_.values[node.in[k]]));
    }
    if (!lookup || node.num_outputs != 1 || node.op->traits.singular || !node.op->loop.shards_rows) return {};
    if (!node.op->loop.shards_rows(node.attrs, pointers(body_.abstract_inputs(node)), sharded)) return {};
    Spec table = body_.values[node.out];
    table.shape.set(0, count);
    if (try_infer(*node.op, node.attrs, pointers(in)) != table) return {};  // its attributes fix the batch size
    return {table, lookup};
  }

  const Program& body_;
  const Signature& loop_;
  std::vector<Rows> rows_;  // by id
};

}  // namespace

Loop delay_gathers(Loop loop, const ScanPasses& passes) {
  if (std::ranges::none_of(loop.body.nodes, [](const auto& node) { return node.op->loop.is_gather; })) return loop;
  ScanPasses constants = passes;
  constants.hoist_inputs = false;
  loop = hoist(std::move(loop), constants);  // so that what depends only on consts is a const
  const Program p = loop.body;
  const int xs = loop.xs();
  const GatherDelayer delayer(p, loop.signature);
  if (delayer.tables.empty()) return loop;

  const auto first_const = p.values.begin() + p.inputs;
  std::vector<Spec> consts(first_const, first_const + p.consts);
  for (int s : delayer.tables) consts.push_back(delayer.table(s));
  Traced body =
      trace_body({p.values.begin(), first_const}, consts, [&](const Tensors& in) { return delayer.late(in); });

  loop.prologue = then(loop.prologue, [&](const Tensors& given) {
    Tensors results = given, more = delayer.made({given.data(), static_cast<std::size_t>(xs + p.consts)});
    more.insert(more.end(), body.consts.begin(), body.consts.end());
    results.insert(results.begin() + xs + p.consts, more.begin(), more.end());
    return results;
  });
  loop.body = std::move(body.program);
  return loop;
}

}  // namespace reel
