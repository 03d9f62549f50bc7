#include "tasks/to_onnx/onnx_function.h"

#include <algorithm>
#include <cstring>

#include "ops/ops.h"

namespace reel {

namespace {
Traced traced_at(std::int64_t batch, const std::function<std::vector<Spec>(std::int64_t)>& inputs, const Function& f) {
  const NoGrad inference;
  return trace(inputs(batch), f);
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}
}  // namespace

OnnxValue constant_value(OnnxGraph& graph, const Tensor& value, const std::string& name) {
  if (!is_complex(value.dtype())) return {graph.constant(value, name)};
  const auto part = [&](const char* suffix) { return name.empty() ? name : name + suffix; };
  return {graph.constant(real(value), part(".re")), graph.constant(imag(value), part(".im"))};
}

OnnxFunction::OnnxFunction(const std::function<std::vector<Spec>(std::int64_t)>& inputs, const Function& f)
    : here_(traced_at(OnnxShape::batch_here, inputs, f)), there_(traced_at(OnnxShape::batch_there, inputs, f)) {}

std::vector<OnnxValue> OnnxFunction::write(OnnxGraph& graph, const std::vector<OnnxValue>& inputs,
                                           const std::string& batch, const ConstantNames& names) const {
  const Program &program = here_.program, &other = there_.program;
  const bool alike = program.consts == other.consts &&
                     std::equal(program.nodes.begin(), program.nodes.end(), other.nodes.begin(), other.nodes.end(),
                                [](const auto& a, const auto& b) { return a.op == b.op && a.in == b.in; });
  if (!alike) throw Error("to_onnx", "the step computes something else for another size of the batch");
  const auto shape = [&](int id) {
    return OnnxShape{program.values[static_cast<std::size_t>(id)].shape,
                     other.values[static_cast<std::size_t>(id)].shape};
  };
  const auto has_batch = [&](int id) { return !(shape(id).here == shape(id).there); };

  std::vector<OnnxValue> values = inputs;
  values.resize(program.values.size());
  Tensors known(program.values.size());  // of constants, and of what depends on them alone
  for (int c = 0; c < program.consts; ++c) {
    const int id = program.inputs + c;
    if (has_batch(id) ||
        !same_values(here_.consts[static_cast<std::size_t>(c)], there_.consts[static_cast<std::size_t>(c)]))
      throw Error("to_onnx", "the step has a constant that was made for one size of the batch");
    known[static_cast<std::size_t>(id)] = here_.consts[static_cast<std::size_t>(c)];
  }
  const auto value = [&](int id) {
    OnnxValue& v = values[static_cast<std::size_t>(id)];
    const Tensor& constant = known[static_cast<std::size_t>(id)];
    if (v.re.empty()) {
      const auto name = names.find(constant.data());
      v = constant_value(graph, constant, name == names.end() ? "" : name->second);
    }
    return v;
  };
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Program::Node& node = program.nodes[n];
    const bool constant = !has_batch(node.out) && std::all_of(node.in.begin(), node.in.end(), [&](int id) {
      return known[static_cast<std::size_t>(id)].defined();
    });
    if (constant) {
      const NoGrad inference;
      apply_node(node, known);
      continue;
    }
    OnnxCall call{.graph = graph,
                  .node = node,
                  .in = {},
                  .specs = {},
                  .result = program.values[static_cast<std::size_t>(node.out)],
                  .shape = shape(node.out),
                  .batch = batch};
    const Attrs& there = other.nodes[n].attrs;
    if (call.attributes != attributes_of(*node.op, there)) call.refuse("has attributes that depend on the batch");
    if (node.op->traits.kind == Kind::elementwise && !node.op->same(node.attrs, there))
      call.refuse("computes with the size of the batch, as a mean over its rows does, and a file is for any size");
    for (const int id : node.in) {
      call.in.push_back(value(id));
      call.specs.push_back(program.values[static_cast<std::size_t>(id)]);
    }
    values[static_cast<std::size_t>(node.out)] = write_op(call);
  }
  std::vector<OnnxValue> results;
  for (const int id : program.outputs) results.push_back(value(id));
  return results;
}

}  // namespace reel
