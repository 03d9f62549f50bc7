// Rematerialize: chooses which values to save for the backward loop and which to recompute there, by a minimal cut. A
// saved value costs writing and reading a stacked buffer. A recomputed one costs its op, and its arguments must be
// saved or recomputed in turn. The cut separates what is available anyway (states, inputs, weights) from what the
// derivative reads: it cuts values at the price of saving them, and ops at the price of recomputing them.
#include <algorithm>
#include <unordered_map>

#include "engine/scan/passes/min_cut.h"
#include "engine/scan/passes/passes.h"

namespace reel {

namespace {

constexpr double never = 1e9;

/// By id: does the derivative of the body read the value?
std::vector<char> read_by_gradient(const Program& body) {
  Tape tape(Tape::Mode::symbolic);
  Tensors value;
  for (const Spec& spec : body.values) value.push_back(Tensor::abstract(spec));
  for (const Program::Node& node : body.nodes) apply_node(node, value);
  std::unordered_map<std::uint64_t, int> id;
  for (int s = 0; s < std::ssize(value); ++s) id[value[s].id()] = s;

  Tensors outputs, wrt;
  GradOptions options{.create_graph = true};
  for (int s : body.outputs) {
    if (!is_differentiable(body.values[s].dtype)) continue;
    outputs.push_back(value[s]);
    options.cotangents.push_back(Tensor::abstract(body.values[s]));
  }
  for (int s = 0; s < body.inputs + body.consts; ++s)
    if (is_differentiable(body.values[s].dtype)) wrt.push_back(value[s]);
  const std::size_t forward = tape.size();
  std::vector<char> read(body.values.size(), 0);
  std::unordered_map<std::uint64_t, char> live;
  for (const Tensor& g : grad(outputs, wrt, options)) live[g.id()] = 1;
  for (std::size_t i = tape.size(); i-- > forward;) {
    const auto made = tape.outputs(tape.node(i));
    if (std::none_of(made.begin(), made.end(), [&](const Tensor& t) { return live.contains(t.id()); })) continue;
    for (const Tensor& t : tape.inputs(tape.node(i))) {
      live[t.id()] = 1;
      if (const auto found = id.find(t.id()); found != id.end()) read[found->second] = 1;
    }
  }
  return read;
}

}  // namespace

std::vector<int> choose_residuals(const Program& body) {
  std::vector<char> read;
  try {
    read = read_by_gradient(body);
  } catch (const Error&) {  // no derivative: grad() will report why if it is ever called
    return {};
  }
  const std::size_t n = body.values.size(), source = 2 * n, sink = source + 1;
  MinCut graph(2 * n + 2);  // value s is vertices 2 s and 2 s + 1; the edge between them is the price of saving it
  const CostModel costs = n > 0 ? body.values[0].backend->costs() : CostModel();  // nothing may be left of a step
  const auto elements = [&](int s) {
    const Spec& spec = body.values[s];
    return static_cast<double>(spec.shape.numel()) * static_cast<double>(size_of(spec.dtype)) / 4;
  };
  std::vector<char> kept(n, 0);
  std::fill(kept.begin(), kept.begin() + body.inputs + body.consts, 1);
  for (int s : body.outputs) kept[s] = 1;
  for (std::size_t s = 0; s < n; ++s) {
    const int id = static_cast<int>(s), producer = body.producer(id);
    const bool view = producer >= 0 && body.nodes[producer].op->alias;
    const double price = !is_differentiable(body.values[s].dtype) ? never : view ? costs.save_view : costs.save;
    graph.edge(2 * s, 2 * s + 1, kept[s] ? 0 : elements(id) * price);
    if (read[s]) graph.edge(2 * s + 1, sink, MinCut::unlimited);
  }
  for (int s = 0; s < body.inputs + body.consts; ++s) graph.edge(source, 2 * s, MinCut::unlimited);
  for (const Program::Node& node : body.nodes) {
    const Traits& traits = node.op->traits;
    const double flops = body.cost(node).flops / std::max(1.0, elements(node.out));
    const double price = traits.kind != Kind::compute ? traits.cost
                         : body.worth_hoisting(node)  ? never
                                                      : costs.memory_bound_product + costs.flop * flops;
    for (int s : node.outputs()) {
      graph.edge(source, 2 * s, price * elements(s));
      for (int from : node.in) graph.edge(2 * from + 1, 2 * s, MinCut::unlimited);
    }
  }
  const std::vector<char> side = graph.source_side(source, sink);
  std::vector<int> values;
  for (std::size_t s = 0; s < n; ++s)
    if (!kept[s] && side[2 * s] && !side[2 * s + 1]) values.push_back(static_cast<int>(s));
  return values;
}

Loop rematerialize(Loop loop, const ScanPasses&) {
  if (!loop.signature.save_carries) return loop;
  std::vector<int>& outputs = loop.body.outputs;
  const std::vector<int> residuals = choose_residuals(loop.body);  // none is an output already
  outputs.insert(outputs.end(), residuals.begin(), residuals.end());
  return loop;
}

}  // namespace reel
