#include "engine/scan/program.h"

#include <fmt/ranges.h>

#include <unordered_map>

namespace reel {

namespace {

/// Turns a symbolic tape into a program: gives each value an id, and leaves out nodes that no output needs.
Traced collect(const Tape& tape, const Tensors& inputs, const Tensors& outputs) {
  Traced out;
  Program& p = out.program;

  std::unordered_map<std::uint64_t, std::size_t> producer;  // tensor id -> node on the tape
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).given) continue;
    for (const Tensor& t : tape.outputs(tape.node(i))) producer[t.id()] = i;
  }
  std::vector<char> live(tape.size(), 0);
  auto want = [&](const Tensor& t) {
    if (const auto found = producer.find(t.id()); found != producer.end()) live[found->second] = 1;
  };
  std::ranges::for_each(outputs, want);
  for (std::size_t i = tape.size(); i-- > 0;)
    if (live[i]) std::ranges::for_each(tape.inputs(tape.node(i)), want);

  std::unordered_map<std::uint64_t, int> id;
  auto add = [&](const Tensor& t) {
    id[t.id()] = static_cast<int>(p.values.size());
    p.values.push_back(t.spec());
  };
  for (const Tensor& t : inputs) add(t);
  p.inputs = static_cast<int>(inputs.size());
  auto add_const = [&](const Tensor& t) {
    if (id.contains(t.id()) || producer.contains(t.id())) return;
    add(t);
    out.consts.push_back(t);
  };
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (live[i]) std::ranges::for_each(tape.inputs(tape.node(i)), add_const);
  std::ranges::for_each(outputs, add_const);
  p.consts = static_cast<int>(out.consts.size());

  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (!live[i]) continue;
    const Tape::Node& node = tape.node(i);
    Program::Node row{
        node.op, node.attrs, node.where, {}, static_cast<int>(p.values.size()), static_cast<int>(node.num_outputs)};
    for (const Tensor& t : tape.inputs(node)) row.in.push_back(id.at(t.id()));
    for (const Tensor& t : tape.outputs(node)) add(t);
    p.nodes.push_back(std::move(row));
  }
  for (const Tensor& t : outputs) p.outputs.push_back(id.at(t.id()));
  return out;
}

}  // namespace

Traced trace(const std::vector<Spec>& specs, const Function& f) {
  Tape tape(Tape::Mode::symbolic);
  Tensors inputs;
  for (const Spec& s : specs) inputs.push_back(Tensor::abstract(s));
  const Tensors outputs = f(inputs);
  return collect(tape, inputs, outputs);
}

void apply_node(const Program::Node& node, Tensors& values) {
  std::vector<const Tensor*> in;
  for (int s : node.in) in.push_back(&values[s]);
  if (node.num_outputs == 1) {
    Tensor out = apply(*node.op, node.attrs, in, node.where);
    values[node.out] = std::move(out);
  } else {
    Tensors out = apply_many(*node.op, node.attrs, in, node.where);
    std::move(out.begin(), out.end(), values.begin() + node.out);
  }
}

Tensors eval(const Program& program, const Tensors& inputs, const Tensors& consts) {
  REEL_ASSERT(static_cast<int>(inputs.size()) == program.inputs && static_cast<int>(consts.size()) == program.consts);
  Tensors values(program.values.size());
  std::copy(inputs.begin(), inputs.end(), values.begin());
  std::copy(consts.begin(), consts.end(), values.begin() + program.inputs);
  for (const Program::Node& node : program.nodes) apply_node(node, values);
  Tensors out;
  for (int s : program.outputs) out.push_back(values[s]);
  return out;
}

Program subset(const Program& program, const std::vector<char>& marked) {
  Program out;
  std::vector<int> id(program.values.size(), -1);
  const auto add = [&](int s) {
    id[s] = static_cast<int>(out.values.size());
    out.values.push_back(program.values[s]);
  };
  for (int s = 0; s < program.inputs + program.consts; ++s) {
    if (!marked[s]) continue;
    add(s);
    ++(s < program.inputs ? out.inputs : out.consts);
  }
  for (const Program::Node& node : program.nodes) {
    if (!any_marked(marked, node.outputs())) continue;
    Program::Node copy = node;
    for (int& s : copy.in) s = id[s];
    copy.out = static_cast<int>(out.values.size());
    for (int s : node.outputs()) add(s);
    out.nodes.push_back(std::move(copy));
  }
  for (int s : program.outputs) out.outputs.push_back(id[s]);
  return out;
}

void mark_ancestors(const Program& program, std::vector<char>& marked) {
  for (const Program::Node& node : std::views::reverse(program.nodes))
    if (any_marked(marked, node.outputs()))
      for (int s : node.in) marked[s] = 1;
}

void mark_descendants(const Program& program, std::vector<char>& marked) {
  for (const Program::Node& node : program.nodes)
    if (any_marked(marked, node.in)) std::fill_n(marked.begin() + node.out, node.num_outputs, 1);
}

bool Program::worth_hoisting(const Node& node) const {
  if (node.op->traits.kind != Kind::compute) return false;
  if (!values[node.out].backend->runs_in_blocks()) return true;  // every call inside a step is a launch
  return !node.op->loop.memory_bound || !node.op->loop.memory_bound(node.attrs, pointers(abstract_inputs(node)));
}

Tensors Program::abstract_inputs(const Node& node) const {
  Tensors in;
  in.reserve(node.in.size());
  for (int s : node.in) in.push_back(Tensor::abstract(values[s]));
  return in;
}

int Program::producer(int id) const {
  const auto after = std::upper_bound(nodes.begin(), nodes.end(), id, [](int s, const Node& n) { return s < n.out; });
  return id < inputs + consts ? -1 : static_cast<int>(after - nodes.begin()) - 1;
}

Program::Cost Program::cost(const Node& node) const {
  if (node.op->alias) return {};
  Cost cost;
  double elements = 0;  // of the larger of arguments and results, as a reduction is made of what it reads
  const auto add = [&](int s) {
    const auto n = static_cast<double>(values[s].shape.numel());
    cost.bytes += n * static_cast<double>(size_of(values[s].dtype));
    elements = std::max(elements, n);
  };
  for (int s : node.in) add(s);
  for (int s : node.outputs()) add(s);
  if (node.op->loop.flops)
    cost.flops = node.op->loop.flops(node.attrs, pointers(abstract_inputs(node)));
  else
    cost.flops = node.op->traits.kind == Kind::movement ? 0 : elements * node.op->traits.cost;
  return cost;
}

std::string Program::str(Text kind) const {
  const auto range = [](const char* name, int first, int n) {
    return n == 0   ? std::string()
           : n == 1 ? fmt::format("{} %{}\n", name, first)
                    : fmt::format("{} %{}..%{}\n", name, first, first + n - 1);
  };
  std::string text = range("inputs", 0, inputs) + range("consts", inputs, consts);
  for (const Node& n : nodes) {
    std::string line = fmt::format("%{} = {}({}{}) {}", fmt::join(n.outputs(), " %"), n.op->traits.name,
                                   n.in.empty() ? "" : "%", fmt::join(n.in, ", %"), values[n.out].str());
    if (kind == Text::costs && !n.op->alias) {
      const Cost c = cost(n);
      line = fmt::format("{:<55} {:>10} {:>9}", line, c.flops > 0 ? amount_text(c.flops, "flop") : "",
                         amount_text(c.bytes, "B"));
    }
    text += line + "\n";
  }
  text += "outputs";
  for (int s : outputs) text += fmt::format(" %{}", s);
  return text + "\n";
}

}  // namespace reel
