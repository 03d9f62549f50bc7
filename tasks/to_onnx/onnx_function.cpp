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

std::size_t index(int id) { return static_cast<std::size_t>(id); }

/// Throws Error unless the programs for two sizes of the batch have the same nodes.
void require_alike(const Program& here, const Program& there) {
  const bool alike = here.consts == there.consts &&
                     std::equal(here.nodes.begin(), here.nodes.end(), there.nodes.begin(), there.nodes.end(),
                                [](const auto& a, const auto& b) { return a.op == b.op && a.in == b.in; });
  if (!alike) throw Error("to_onnx", "the step computes something else for another size of the batch");
}

OnnxShape shape_of(const Program& here, const Program& there, int id) {
  return {here.values[index(id)].shape, there.values[index(id)].shape};
}
bool has_batch(const OnnxShape& shape) { return !(shape.here == shape.there); }

/// The constants of a program, each in the place of its value. Throws Error for one that depends on the batch.
Tensors constants_of(const Traced& here, const Traced& there) {
  const Program& program = here.program;
  Tensors known(program.values.size());
  for (int c = 0; c < program.consts; ++c) {
    const int id = program.inputs + c;
    if (has_batch(shape_of(program, there.program, id)) || !same_values(here.consts[index(c)], there.consts[index(c)]))
      throw Error("to_onnx", "the step has a constant that was made for one size of the batch");
    known[index(id)] = here.consts[index(c)];
  }
  return known;
}

/// Throws Error if a node computes with the size of the batch; it has other attributes at another size.
void require_any_batch(const OnnxCall& call, const Attrs& there) {
  const Program::Node& node = call.node;
  if (call.attributes != attributes_of(*node.op, there)) call.refuse("has attributes that depend on the batch");
  if (node.op->traits.kind == Kind::elementwise && !node.op->same(node.attrs, there))
    call.refuse("computes with the size of the batch, as a mean over its rows does, and a file is for any size");
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
  require_alike(program, other);
  std::vector<OnnxValue> values = inputs;
  values.resize(program.values.size());
  Tensors known = constants_of(here_, there_);  // and what depends on them alone
  const auto value = [&](int id) {
    OnnxValue& v = values[index(id)];
    const Tensor& constant = known[index(id)];
    if (v.re.empty()) {
      const auto name = names.find(constant.data());
      v = constant_value(graph, constant, name == names.end() ? "" : name->second);
    }
    return v;
  };
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Program::Node& node = program.nodes[n];
    const OnnxShape shape = shape_of(program, other, node.out);
    if (!has_batch(shape) && std::ranges::all_of(node.in, [&](int id) { return known[index(id)].defined(); })) {
      const NoGrad inference;
      apply_node(node, known);
      continue;
    }
    OnnxCall call{.graph = graph,
                  .node = node,
                  .in = {},
                  .specs = {},
                  .result = program.values[index(node.out)],
                  .shape = shape,
                  .batch = batch};
    require_any_batch(call, other.nodes[n].attrs);
    for (const int id : node.in) {
      call.in.push_back(value(id));
      call.specs.push_back(program.values[index(id)]);
    }
    values[index(node.out)] = write_op(call);
  }
  std::vector<OnnxValue> results;
  for (const int id : program.outputs) results.push_back(value(id));
  return results;
}

}  // namespace reel
