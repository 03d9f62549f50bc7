// Hoist: what does not depend on the state leaves the loop and runs once on [T, ...]: one product of T B rows instead
// of T products of B rows.
//
// Compute ops (products, gathers, reductions) move, with everything they depend on. Elementwise ops move if their
// inputs have moved and fusion would not make them cheap inside the loop. What depends only on consts runs once.
#include "engine/scan/scan.h"

namespace reel {

namespace {

struct Plan {
  std::vector<char> varying;  // by id: differs from step to step
  std::vector<char> lifted;   // by node: is hoisted
};

Plan plan(const ScanCall& call) {
  const Program& p = call.body;
  const std::size_t nodes = p.nodes.size();
  Plan out{std::vector<char>(p.values.size(), 0), std::vector<char>(nodes, 0)};
  std::vector<char> on_state(p.values.size(), 0), stays(p.values.size(), 0), may(nodes, 0);
  const auto any = [](const std::vector<char>& marks, const std::vector<int>& values) {
    for (int s : values) {
      if (marks[s]) return true;
    }
    return false;
  };
  // Forwards: a node may move if it does not depend on the state, and has a vmap or does not vary.
  for (int s = 0; s < p.inputs; ++s) (s < call.carries() ? on_state : out.varying)[s] = 1;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    const bool state = any(on_state, node.in), vary = any(out.varying, node.in);
    may[i] = !state && !any(stays, node.in) && (!vary || (node.op->vmap && call.passes.hoist_inputs));
    for (int s = node.out; s < node.out + node.num_outputs; ++s) {
      on_state[s] = state;
      out.varying[s] = vary;
      stays[s] = !may[i];
    }
  }
  // Backwards: nodes worth hoisting move, with all that they depend on; so do constant nodes.
  std::vector<char> needed(p.values.size(), 0);  // by id: a hoisted node reads it
  for (std::size_t i = nodes; i-- > 0;) {
    const Program::Node& node = p.nodes[i];
    bool wanted = p.worth_hoisting(node) || !out.varying[node.out];
    for (int s = node.out; s < node.out + node.num_outputs; ++s) wanted = wanted || needed[s];
    out.lifted[i] = may[i] && wanted;
    if (!out.lifted[i]) continue;
    for (int s : node.in) needed[s] = 1;
  }
  // Forwards again: other nodes follow if all their varying inputs have moved. Not so where they would be fused in
  // blocks: inside a fusion group they cost less than writing and reading a stacked result.
  if (nodes == 0 || (call.passes.fuse && p.values[0].backend->runs_in_blocks())) return out;
  std::vector<char> raw(p.values.size(), 0);  // by id: varies and is still inside the loop
  for (int s = call.carries(); s < p.inputs; ++s) raw[s] = 1;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    if (may[i] && !any(raw, node.in)) out.lifted[i] = 1;
    for (int s = node.out; s < node.out + node.num_outputs; ++s) raw[s] = !out.lifted[i];
  }
  return out;
}

}  // namespace

void hoist(ScanCall& call) {
  const Program& p = call.body;
  const Plan moves = plan(call);
  const auto carries = static_cast<std::size_t>(call.carries()), inputs = static_cast<std::size_t>(p.inputs);

  Tensors outside(p.values.size());  // by id: values outside the loop, stacked [T, ...] where varying
  for (std::size_t j = 0; j < call.xs.size(); ++j) outside[carries + j] = call.xs[j];
  for (std::size_t k = 0; k < call.consts.size(); ++k) outside[inputs + k] = call.consts[k];
  bool any = false;
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    if (!moves.lifted[i]) continue;
    any = true;
    const Program::Node& node = p.nodes[i];
    if (!moves.varying[node.out]) {
      apply_node(node, outside);
      continue;
    }
    std::vector<const Tensor*> in;
    Mapped varying;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const auto s = node.in[k];
      in.push_back(&outside[s]);
      if (moves.varying[s]) varying.set(k);
    }
    outside[node.out] = node.op->vmap(node.attrs, in, varying, call.length);
  }
  if (!any) return;

  // The rest of the body, with the hoisted values as further inputs (varying) or consts (constant).
  std::vector<Spec> specs(p.values.begin(), p.values.begin() + p.inputs);
  std::vector<std::size_t> imported;
  Tensors xs = call.xs;
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    const auto s = (p.nodes[i].out);
    if (!moves.lifted[i] || !moves.varying[s]) continue;
    imported.push_back(s);
    specs.push_back(p.values[s]);
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
    for (int s : p.outputs) out.push_back(value[s]);
    return out;
  });
  call.body = std::move(rest.program);
  call.consts = std::move(rest.consts);
  call.xs = std::move(xs);
}

}  // namespace reel
