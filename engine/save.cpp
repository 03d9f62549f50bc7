// Save: what the gradient's loop reads of a step it finds ready, or makes again from what it finds. A value that is
// kept costs a slab to write and read; one that is made again costs its op, and asks the same of its arguments. The
// cheapest choice is a cut between what is there anyway (states, inputs, weights) and what the derivative reads:
// through values, at the price of keeping them, or through ops, at the price of repeating them.
#include <algorithm>
#include <unordered_map>

#include "engine/min_cut.h"
#include "engine/scan.h"

namespace reel {

namespace {

// Prices of an element of 4 bytes, an addition in a fused run being 1. A view may have to be copied to its slab.
constexpr double keeping = 16, keeping_view = 20, thin_product = 4, never = 1e9;

/// By slot: does the derivative of the body look at the value?
std::vector<char> read_by_gradient(const Program& body) {
  Tape tape(Tape::Mode::symbolic);
  Tensors value;
  for (int s = 0; s < body.inputs + body.captures; ++s) value.push_back(Tensor::abstract(body.slots[ix(s)]));
  value.resize(body.slots.size());
  for (const Program::Node& node : body.nodes) apply_node(node, value);
  std::unordered_map<std::uint64_t, int> slot;
  for (int s = 0; s < std::ssize(value); ++s) slot[value[ix(s)].id()] = s;

  Tensors outputs, wrt;
  GradOptions options;
  for (int s : body.outputs) {
    if (!is_differentiable(body.slots[ix(s)].dtype)) continue;
    outputs.push_back(value[ix(s)]);
    options.cotangents.push_back(Tensor::abstract(body.slots[ix(s)]));
  }
  for (int s = 0; s < body.inputs + body.captures; ++s) {
    if (is_differentiable(body.slots[ix(s)].dtype)) wrt.push_back(value[ix(s)]);
  }
  const std::size_t forward = tape.size();
  std::vector<char> read(body.slots.size(), 0);
  std::unordered_map<std::uint64_t, char> live;
  for (const Tensor& g : grad(outputs, wrt, options)) live[g.id()] = 1;
  for (std::size_t i = tape.size(); i-- > forward;) {
    const auto made = tape.outputs(tape.node(i));
    if (std::none_of(made.begin(), made.end(), [&](const Tensor& t) { return live.contains(t.id()); })) continue;
    for (const Tensor& t : tape.inputs(tape.node(i))) {
      live[t.id()] = 1;
      if (const auto found = slot.find(t.id()); found != slot.end()) read[ix(found->second)] = 1;
    }
  }
  return read;
}

}  // namespace

std::vector<int> worth_saving(const Program& body) {
  std::vector<char> read;
  try {
    read = read_by_gradient(body);
  } catch (const Error&) {  // there is no derivative: who asks for one will hear why
    return {};
  }
  const std::size_t n = body.slots.size(), source = 2 * n, sink = source + 1;
  MinCut graph(2 * n + 2);  // vertices 2 s and 2 s + 1: before and after the price of keeping s
  const auto elements = [&](int s) {
    const Spec& spec = body.slots[ix(s)];
    return static_cast<double>(spec.shape.numel()) * static_cast<double>(size_of(spec.dtype)) / 4;
  };
  std::vector<char> kept(n, 0);
  std::fill(kept.begin(), kept.begin() + body.inputs + body.captures, 1);
  for (int s : body.outputs) kept[ix(s)] = 1;
  for (std::size_t s = 0; s < n; ++s) {
    const int slot = static_cast<int>(s);
    const int maker = body.maker(slot);
    const bool view = maker >= 0 && body.nodes[ix(maker)].op->alias;
    const double price = !is_differentiable(body.slots[s].dtype) ? never : view ? keeping_view : keeping;
    graph.edge(2 * s, 2 * s + 1, kept[s] ? 0 : elements(slot) * price);
    if (read[s]) graph.edge(2 * s + 1, sink, MinCut::unlimited);
  }
  for (int s = 0; s < body.inputs + body.captures; ++s) graph.edge(source, 2 * ix(s), MinCut::unlimited);
  for (const Program::Node& node : body.nodes) {
    const Traits& traits = node.op->traits;
    const double price = traits.kind != Kind::heavy ? traits.effort : body.gains_outside(node) ? never : thin_product;
    for (int s = node.out; s < node.out + node.outs; ++s) {
      graph.edge(source, 2 * ix(s), price * elements(s));
      for (int from : node.in) graph.edge(2 * ix(from) + 1, 2 * ix(s), MinCut::unlimited);
    }
  }
  const std::vector<char> side = graph.source_side(source, sink);
  std::vector<int> slots;
  for (std::size_t s = 0; s < n; ++s) {
    if (!kept[s] && side[2 * s] && !side[2 * s + 1]) slots.push_back(static_cast<int>(s));
  }
  return slots;
}

}  // namespace reel
