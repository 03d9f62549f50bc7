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
    if (!all(equal(one[i], two[i])).item())
      throw Error("to_onnx", fmt::format("the first {} depends on the size of the batch", name));
    parts.push_back({layer.name + name + (complex ? ".re" : ""), i, false, width, real(one[i])});
    if (complex) parts.push_back({layer.name + name + ".im", i, true, width, imag(one[i])});
  }
  return parts;
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
  const Cell& cell = layer.cell;
  const std::vector<Part> parts = parts_of(layer);
  const std::vector<State> states = cell.states();
  const Tensors one = cell.initial(1);
  const DType dtype = real_of(one.at(0).dtype());
  const OnnxType type = onnx_type(dtype);

  // What goes into the loop: first states, inputs, and where they are valid.
  std::vector<std::string> arguments;
  const std::string rows = graph.node("Concat", {in.batch, graph.integers({1})}, {{"axis", 0}});
  for (const Part& part : parts) {
    std::string first = "first." + part.name;
    if (layer.has_states)
      graph.optional_input(first, part.first, {"batch of " + first, part.width});
    else
      first = graph.constant(part.first);
    arguments.push_back(graph.node("Expand", {first, rows}));
  }
  arguments.push_back(in.xs);
  if (!in.valid.empty()) arguments.push_back(in.valid);

  // The body: states and a row of inputs to the next states and the output.
  OnnxGraph body = graph.body();
  std::vector<OnnxValue> before(states.size());
  for (const Part& part : parts) {
    std::string& place = part.imaginary ? before[part.state].im : before[part.state].re;
    place = body.fresh("state");
    body.input(place, type, {"batch", part.width});
  }
  const std::string x = body.fresh("x");
  body.input(x, type, {"batch", cell.input});
  const std::string valid = in.valid.empty() ? "" : body.fresh("valid");
  if (!valid.empty()) body.input(valid, OnnxType::boolean, {"batch", std::int64_t{1}});
  const std::string batch = body.node("Shape", {x}, {{"start", 0}, {"end", 1}});

  const auto specs_of_states = [&](std::int64_t B) {
    std::vector<Spec> specs;
    for (const Tensor& s : one) specs.push_back({s.dtype(), s.shape().erase(0).insert(0, B), &s.backend()});
    return specs;
  };
  const OnnxFunction step(
      [&](std::int64_t B) {
        std::vector<Spec> specs = specs_of_states(B);
        specs.push_back({dtype, {B, cell.input}, &one[0].backend()});
        return specs;
      },
      [&](const Tensors& args) {
        const Tensors state(args.begin(), args.end() - 1);
        return Zoneout{layer.zoneout}.mean(state, cell.step(state, args.back()));
      });
  std::vector<OnnxValue> inputs = before;
  inputs.push_back({x});
  std::vector<OnnxValue> after = step.write(body, inputs, batch, names);
  for (const Part& part : parts) {
    std::string& name = part.imaginary ? after[part.state].im : after[part.state].re;
    if (part.imaginary) name = imaginary(body, after[part.state], dtype);
    if (!valid.empty())
      name = body.node("Where", {valid, name, part.imaginary ? before[part.state].im : before[part.state].re});
    const std::string result = body.fresh("next");
    body.node_called({result}, "Identity", {name});
    body.output(result, type, {"batch", part.width});
  }
  const OnnxFunction read_out(specs_of_states, [&](const Tensors& state) { return Tensors{cell.output(state)}; });
  const std::string y = body.fresh("y");
  body.node_called({y}, "Identity", {read_out.write(body, after, batch, names)[0].re});
  body.output(y, type, {"batch", cell.outputs()});

  std::vector<std::string> all;
  for (const Part& part : parts) all.push_back(layer.has_states ? "last." + part.name : graph.fresh("last"));
  all.push_back(graph.fresh("ys"));
  const std::vector<std::int64_t> directions(valid.empty() ? 1 : 2, layer.reverse ? 1 : 0);
  graph.node_called(all, "Scan", arguments,
                    {{"body", &body},
                     {"num_scan_inputs", std::ssize(directions)},
                     {"scan_input_directions", directions},
                     {"scan_output_directions", std::vector<std::int64_t>{layer.reverse ? 1 : 0}}});
  return all.back();
}

}  // namespace reel
