// Hoist: what does not depend on the state leaves the loop and runs once in the prologue, on [T, ...]: one product of
// T B rows instead of T products of B rows.
//
// Compute ops (products, gathers, reductions) move, with everything they depend on. Elementwise ops move if their
// inputs have moved and fusion would not make them cheap inside the loop. What depends only on consts runs once.
#include <algorithm>

#include "engine/scan/passes/passes.h"

namespace reel {

namespace {

struct Moves {
  std::vector<char> varying;  // by id: differs from step to step
  std::vector<char> lifted;   // by node: is hoisted
};

Moves plan(const Program& p, const Signature& loop, const ScanPasses& passes) {
  const std::size_t nodes = p.nodes.size();
  Moves out{std::vector<char>(p.values.size(), 0), std::vector<char>(nodes, 0)};
  std::vector<char> on_state(p.values.size(), 0), stays(p.values.size(), 0), may(nodes, 0), term(p.values.size(), 0);
  // Terms of sums over time stay where sink_reductions makes one op of the sum.
  for (int k = loop.carries - loop.accumulators; k < loop.carries && passes.sink_reductions; ++k)
    term[p.nodes[p.producer(p.outputs[k])].in[1]] = 1;
  // Forwards: a node may move if it does not depend on the state, and has a vmap or does not vary.
  for (int s = 0; s < p.inputs; ++s) (s < loop.carries ? on_state : out.varying)[s] = 1;
  mark_descendants(p, on_state);
  mark_descendants(p, out.varying);
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    // A gradient may compare it with what the loop before saved: on [T, ...] its last bits could be others.
    const bool recomputed = loop.gradient && node.op->traits.kind == Kind::compute && !p.worth_hoisting(node);
    may[i] = !on_state[node.out] && !any_marked(stays, node.in) && !(term[node.out] && node.op->loop.vmap_sum) &&
             (!out.varying[node.out] || (node.op->loop.vmap && passes.hoist_inputs && !recomputed &&
                                         p.values[node.out].shape.rank() < Shape::max_rank));
    std::fill_n(stays.begin() + node.out, node.num_outputs, !may[i]);
  }
  // Backwards: nodes worth hoisting move, with all that they depend on; so do constant nodes.
  std::vector<char> needed(p.values.size(), 0);  // by id: a hoisted node reads it
  for (std::size_t i = nodes; i-- > 0;) {
    const Program::Node& node = p.nodes[i];
    const bool wanted = p.worth_hoisting(node) || !out.varying[node.out] || any_marked(needed, node.outputs());
    out.lifted[i] = may[i] && wanted;
    for (int s : node.in) needed[s] = needed[s] || out.lifted[i];
  }
  // Forwards again: other nodes follow if all their varying inputs have moved. Not so where they would be fused in
  // blocks: inside a fusion group they cost less than writing and reading a stacked result.
  if (nodes == 0 || (passes.fuse && p.values[0].backend->runs_in_blocks())) return out;
  std::vector<char> raw(p.values.size(), 0);  // by id: varies and is still inside the loop
  for (int s = loop.carries; s < p.inputs; ++s) raw[s] = 1;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    if (may[i] && !any_marked(raw, node.in)) out.lifted[i] = 1;
    for (int s : node.outputs()) raw[s] = !out.lifted[i];
  }
  return out;
}

}  // namespace

Tensor all_steps(const Program& body, const Program::Node& node, const Tensors& value, const std::vector<char>& varying,
                 std::int64_t length, bool sum) try {
  std::vector<const Tensor*> in;
  Mapped mapped;
  for (std::size_t k = 0; k < node.in.size(); ++k) {
    in.push_back(&value[node.in[k]]);
    if (varying[node.in[k]]) mapped.set(k);
  }
  Tape& tape = *Tape::current();
  const std::size_t first = tape.size();
  const Spec expected = sum ? body.values[node.out] : stacked(body.values[node.out], length);
  Tensor all = (sum ? node.op->loop.vmap_sum : node.op->loop.vmap)(node.attrs, in, mapped, length);
  if (all.defined() ? !(all.spec() == expected) : !sum)
    fail(node.op->traits.name, node.where, "its {} gives {}, {} expected", sum ? "vmap_sum" : "vmap",
         all.defined() ? all.spec().str() : "an undefined tensor", expected.str());
  // Errors of what vmap calls name the line of the call in the step.
  for (std::size_t i = first; i < tape.size(); ++i) tape.node(i).where = node.where;
  return all;
} catch (const RuleError& e) {
  fail(node.op->traits.name, node.where, "{}", e.rule);
}

Loop hoist(Loop loop, const ScanPasses& passes) {
  const Program p = loop.body;
  const int carries = loop.signature.carries, xs = loop.xs();
  const Moves moves = plan(p, loop.signature, passes);
  if (std::find(moves.lifted.begin(), moves.lifted.end(), 1) == moves.lifted.end()) return loop;

  // Hoisted values come to the body as further inputs (varying) or consts (constant).
  std::vector<int> steps, constants;
  std::vector<Spec> inputs(p.values.begin(), p.values.begin() + p.inputs);
  std::vector<Spec> consts(p.values.begin() + p.inputs, p.values.begin() + p.inputs + p.consts);
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    if (!moves.lifted[i]) continue;
    for (int s : p.nodes[i].outputs()) {
      (moves.varying[s] ? steps : constants).push_back(s);
      (moves.varying[s] ? inputs : consts).push_back(p.values[s]);
    }
  }
  Traced body = trace_body(inputs, consts, [&](const Tensors& in) {
    Tensors value(p.values.size());
    auto next = std::copy_n(in.begin(), p.inputs, value.begin());
    auto from = in.begin() + p.inputs;
    for (int s : steps) value[s] = *from++;
    std::copy_n(from, p.consts, next);
    from += p.consts;
    for (int s : constants) value[s] = *from++;
    for (std::size_t i = 0; i < p.nodes.size(); ++i)
      if (!moves.lifted[i]) apply_node(p.nodes[i], value);
    Tensors out;
    for (int s : p.outputs) out.push_back(value[s]);
    return out;
  });

  loop.prologue = then(loop.prologue, [&](const Tensors& results) {
    Tensors value(p.values.size());
    std::copy_n(results.begin(), xs + p.consts, value.begin() + carries);
    for (std::size_t i = 0; i < p.nodes.size(); ++i) {
      const Program::Node& node = p.nodes[i];
      if (moves.lifted[i] && !moves.varying[node.out]) apply_node(node, value);
      if (moves.lifted[i] && moves.varying[node.out])
        value[node.out] = all_steps(p, node, value, moves.varying, loop.signature.length);
    }
    Tensors out(results.begin(), results.begin() + xs);
    for (int s : steps) out.push_back(value[s]);
    out.insert(out.end(), results.begin() + xs, results.begin() + xs + p.consts);
    for (int s : constants) out.push_back(value[s]);
    out.insert(out.end(), body.consts.begin(), body.consts.end());
    out.insert(out.end(), results.begin() + xs + p.consts, results.end());
    return out;
  });
  loop.body = std::move(body.program);
  return loop;
}

}  // namespace reel
