// Hoist: what a step computes without looking at the state is the same work for all times, so it leaves the loop and
// runs once on [T, ...]: a T x B row product instead of T small ones.
//
// Products, lookups and reductions move, with all they need; elementwise ops move when their inputs have moved, else
// they stay, where they cost no memory traffic. What depends on captures alone runs once.
#include "engine/scan.h"

namespace reel {

namespace {

struct Plan {
  std::vector<char> varying;  // by slot: differs from step to step
  std::vector<char> lifted;   // by node: leaves the loop
};

Plan plan(const ScanCall& call) {
  const Program& p = call.body;
  const std::size_t nodes = p.nodes.size();
  Plan out{std::vector<char>(p.slots.size(), 0), std::vector<char>(nodes, 0)};
  std::vector<char> on_state(p.slots.size(), 0), stays(p.slots.size(), 0), may(nodes, 0);
  const auto any = [](const std::vector<char>& marks, const std::vector<int>& slots) {
    for (int s : slots) {
      if (marks[ix(s)]) return true;
    }
    return false;
  };
  // Forwards: what may move is what no state reaches, and can be done for all times at once.
  for (int s = 0; s < p.inputs; ++s) (s < call.carries() ? on_state : out.varying)[ix(s)] = 1;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    const bool state = any(on_state, node.in), vary = any(out.varying, node.in);
    may[i] = !state && !any(stays, node.in) && (!vary || (node.op->batch && call.passes.hoist_inputs));
    for (int s = node.out; s < node.out + node.outs; ++s) {
      on_state[ix(s)] = state;
      out.varying[ix(s)] = vary;
      stays[ix(s)] = !may[i];
    }
  }
  // Backwards: heavy nodes move, and what they need; so do constants.
  std::vector<char> needed(p.slots.size(), 0);  // by a node that moves
  for (std::size_t i = nodes; i-- > 0;) {
    const Program::Node& node = p.nodes[i];
    bool wanted = p.gains_outside(node) || !out.varying[ix(node.out)];
    for (int s = node.out; s < node.out + node.outs; ++s) wanted = wanted || needed[ix(s)];
    out.lifted[i] = may[i] && wanted;
    if (!out.lifted[i]) continue;
    for (int s : node.in) needed[ix(s)] = 1;
  }
  // Forwards again: light nodes follow when all that varies in them has moved, if they would be calls of their own in
  // the loop; as a part of a run that goes through caches they cost less there than a slab to write and read.
  if (nodes == 0 || (call.passes.fuse && p.slots[0].backend->runs_in_blocks())) return out;
  std::vector<char> raw(p.slots.size(), 0);  // varying and still inside the loop
  for (int s = call.carries(); s < p.inputs; ++s) raw[ix(s)] = 1;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    if (may[i] && !any(raw, node.in)) out.lifted[i] = 1;
    for (int s = node.out; s < node.out + node.outs; ++s) raw[ix(s)] = !out.lifted[i];
  }
  return out;
}

}  // namespace

void hoist(ScanCall& call) {
  const Program& p = call.body;
  const Plan moves = plan(call);
  const auto carries = static_cast<std::size_t>(call.carries()), inputs = static_cast<std::size_t>(p.inputs);

  Tensors outside(p.slots.size());  // values outside the loop: slabs [T, ...] where varying
  for (std::size_t j = 0; j < call.xs.size(); ++j) outside[carries + j] = call.xs[j];
  for (std::size_t k = 0; k < call.captures.size(); ++k) outside[inputs + k] = call.captures[k];
  bool any = false;
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    if (!moves.lifted[i]) continue;
    any = true;
    const Program::Node& node = p.nodes[i];
    if (!moves.varying[ix(node.out)]) {
      apply_node(node, outside);
      continue;
    }
    std::vector<const Tensor*> in;
    Varying varying;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const auto s = ix(node.in[k]);
      in.push_back(&outside[s]);
      if (moves.varying[s]) varying.set(k);
    }
    outside[ix(node.out)] = node.op->batch(node.attrs, in, varying, call.length);
  }
  if (!any) return;

  // The rest of the body, with the moved values as further inputs (varying) or captures (constant).
  std::vector<Spec> specs(p.slots.begin(), p.slots.begin() + p.inputs);
  std::vector<std::size_t> imported;
  Tensors xs = call.xs;
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    const auto s = ix(p.nodes[i].out);
    if (!moves.lifted[i] || !moves.varying[s]) continue;
    imported.push_back(s);
    specs.push_back(p.slots[s]);
    xs.push_back(outside[s]);
  }
  Traced rest = trace(specs, [&](const Tensors& in) {
    Tensors value = outside;
    std::copy(in.begin(), in.begin() + p.inputs, value.begin());
    for (std::size_t k = 0; k < imported.size(); ++k) value[imported[k]] = in[inputs + k];
    for (std::size_t i = 0; i < p.nodes.size(); ++i) {
      if (!moves.lifted[i]) apply_node(p.nodes[i], value);
    }
    Tensors out;
    for (int s : p.outputs) out.push_back(value[ix(s)]);
    return out;
  });
  call.body = std::move(rest.program);
  call.captures = std::move(rest.captures);
  call.xs = std::move(xs);
}

}  // namespace reel
