#include "tasks/to_onnx/layer.h"

namespace reel {

namespace {

/// The parts of a layer's states: a complex state has two.
struct Part {
  std::string name;
  std::size_t state;
  bool imaginary;
  std::int64_t width;
  Tensor first;  // [1, width]
};

std::vector<Part> parts_of(const OnnxLayer& layer) {
  const NoGrad inference;
  const std::vector<State> states = layer.cell.states();
  const Tensors one = layer.cell.initial(1), two = layer.cell.initial(2);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto& [name, width, complex] = states[i];
    if (all(equal(one[i], two[i])).item() == 0)
      throw Error("to_onnx", fmt::format("the first {} depends on the size of the batch", name));
    parts.push_back({layer.name + name + (complex ? ".re" : ""), i, false, width, real(one[i])});
    if (complex) parts.push_back({layer.name + name + ".im", i, true, width, imag(one[i])});
  }
  return parts;
}

/// The step of a layer as the body of a Scan: states, a row of inputs and if `masked` where it is valid, to the next
/// states and the output.
OnnxGraph body_of(const OnnxGraph& graph, const OnnxLayer& layer, const std::vector<Part>& parts, bool masked,
                  const ConstantNames& names) {
  const Cell& cell = layer.cell;
  const Tensors initial = cell.initial(1);
  const DType dtype = parts.at(0).first.dtype();
  const OnnxType type = onnx_type(dtype);
  const auto place = [](std::vector<OnnxValue>& values, const Part& part) -> std::string& {
    return part.imaginary ? values[part.state].im : values[part.state].re;
  };

  OnnxGraph body = graph.body();
  std::vector<OnnxValue> before(initial.size());
  for (const Part& part : parts) {
    place(before, part) = body.fresh("state");
    body.input(place(before, part), type, {"batch", part.width});
  }
  const std::string x = body.fresh("x"), valid = body.fresh("valid");
  body.input(x, type, {"batch", cell.input});
  if (masked) body.input(valid, OnnxType::boolean, {"batch", std::int64_t{1}});
  const std::string batch = body.node("Shape", {x}, {{"start", 0}, {"end", 1}});
  const auto result = [&](const std::string& kind, const std::string& value, std::int64_t width) {
    const std::string name = body.fresh(kind);
    body.node_called({name}, "Identity", {value});
    body.output(name, type, {"batch", width});
  };

  const auto states = [&](std::int64_t B) {
    std::vector<Spec> specs;
    for (const Tensor& s : initial) specs.push_back({s.dtype(), s.shape().erase(0).insert(0, B), &s.backend()});
    return specs;
  };
  const auto states_and_row = [&](std::int64_t B) {
    std::vector<Spec> specs = states(B);
    specs.push_back({dtype, {B, cell.input}, &initial[0].backend()});
    return specs;
  };
  const OnnxFunction step(states_and_row, [&](const Tensors& args) {
    const Tensors state(args.begin(), args.end() - 1);
    return Zoneout{layer.zoneout}.mean(state, cell.step(state, args.back()));
  });
  std::vector<OnnxValue> inputs = before;
  inputs.push_back({x});
  std::vector<OnnxValue> after = step.write(body, inputs, batch, names);
  for (const Part& part : parts) {
    std::string& next = place(after, part);
    if (part.imaginary) next = imaginary(body, after[part.state], dtype);
    if (masked) next = body.node("Where", {valid, next, place(before, part)});
    result("next", next, part.width);
  }
  const OnnxFunction output(states, [&](const Tensors& state) { return Tensors{cell.output(state)}; });
  result("y", output.write(body, after, batch, names)[0].re, cell.outputs());
  return body;
}

}  // namespace

void declare_last_states(OnnxGraph& graph, const OnnxLayer& layer) {
  for (const Part& part : parts_of(layer))
    graph.output("last." + part.name, onnx_type(part.first.dtype()), {"batch", part.width});
}

std::string valid_steps(OnnxGraph& graph, const std::string& x, const std::string& lengths) {
  const std::string zero = graph.node("Squeeze", {graph.integers({0})});
  const std::string one = graph.node("Squeeze", {graph.integers({1})});
  const std::string steps = graph.node("Squeeze", {graph.node("Shape", {x}, {{"start", 0}, {"end", 1}})});
  const std::string times = graph.node("Range", {zero, steps, one});
  return graph.node("Less", {graph.node("Unsqueeze", {times, graph.integers({1, 2})}),
                             graph.node("Unsqueeze", {lengths, graph.integers({0, 2})})});
}

std::string write_layer(OnnxGraph& graph, const OnnxLayer& layer, const OnnxSequences& in, const ConstantNames& names) {
  const std::vector<Part> parts = parts_of(layer);
  const bool masked = !in.valid.empty();
  std::vector<std::string> arguments, results;
  const std::string shape = graph.node("Concat", {in.batch, graph.integers({1})}, {{"axis", 0}});
  for (const Part& part : parts) {
    std::string first = "first." + part.name;
    if (layer.has_states)
      graph.optional_input(first, part.first, {"batch of " + first, part.width});
    else
      first = graph.constant(part.first);
    arguments.push_back(graph.node("Expand", {first, shape}));
    results.push_back(layer.has_states ? "last." + part.name : graph.fresh("last"));
  }
  arguments.push_back(in.xs);
  if (masked) arguments.push_back(in.valid);
  results.push_back(graph.fresh("ys"));
  const OnnxGraph body = body_of(graph, layer, parts, masked, names);
  const std::vector<std::int64_t> directions(masked ? 2 : 1, layer.reverse ? 1 : 0);
  graph.node_called(results, "Scan", arguments,
                    {{"body", &body},
                     {"num_scan_inputs", std::ssize(directions)},
                     {"scan_input_directions", directions},
                     {"scan_output_directions", std::vector<std::int64_t>{layer.reverse ? 1 : 0}}});
  return results.back();
}

}  // namespace reel
