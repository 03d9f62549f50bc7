#include "tasks/to_onnx/models.h"

#include <nlohmann/json.hpp>

#include "tasks/to_onnx/layer.h"

namespace reel {

namespace {

/// The sequences of a graph's input x, and its further input `lengths`.
OnnxSequences sequences_of(OnnxGraph& graph, bool lengths) {
  OnnxSequences in{"x", graph.node("Shape", {"x"}, {{"start", 1}, {"end", 2}})};
  if (!lengths) return in;
  graph.input("lengths", OnnxType::i64, {"batch"});
  in.valid = valid_steps(graph, "x", "lengths");
  return in;
}

void require_states(const std::string& name, const Cell& cell) {
  if (cell.recurrent()) return;
  throw Error(name, "this cell reads whole sequences and has no step, of which a Scan is made");
}

ConstantNames names_of(const std::vector<Parameter>& parameters) {
  ConstantNames names;
  for (const Parameter& p : parameters) names[p.value.data()] = p.name;
  return names;
}

Tensor numbers_of(const std::vector<ScaledColumn>& columns, double ScaledColumn::*member, DType dtype) {
  std::vector<double> values;
  for (const ScaledColumn& column : columns) values.push_back(column.*member);
  return cast(Tensor::from(std::span<const double>(values), {std::ssize(values)}), dtype);
}

/// Writes a model around its layers, as Model::operator() computes it.
class ModelWriter {
 public:
  ModelWriter(const TrainedModel& trained, const std::optional<TableSpec>& spec)
      : config_(trained.config), model_(trained.model), spec_(spec), names_(names_of(trained.model.parameters())) {
    for (const Parameter& p : model_.parameters()) parameters_[p.name] = p.value;
  }

  OnnxGraph write(bool lengths) {
    const ModelShape& shape = config_.shape;
    const std::vector<LayerOptions> options = layers_of(config_.options);
    const std::size_t directions = config_.options.bidirectional ? 2 : 1;
    if (shape.vocabulary > 0)
      graph_.input("x", OnnxType::i64, {"time", "batch"});
    else
      graph_.input("x", spec_ ? OnnxType::f64 : onnx_type(config_.dtype), {"time", "batch", shape.inputs});
    OnnxSequences in = sequences_of(graph_, lengths);
    std::vector<OnnxDim> dims{"batch", shape.outputs};
    if (shape.every_step) dims.insert(dims.begin(), "time");
    const bool values = spec_ && !spec_->classifies();
    graph_.output("y", values ? OnnxType::f64 : onnx_type(config_.dtype), dims);

    std::vector<OnnxLayer> layers;
    for (std::size_t c = 0; c < model_.cells().size(); ++c) {
      require_states(options[c / directions].cell, *model_.cells()[c]);
      layers.push_back({.cell = *model_.cells()[c],
                        .name = options.size() == 1 ? "" : fmt::format("layer{}.", c / directions + 1),
                        .zoneout = config_.options.zoneout,
                        .reverse = c % directions == 1,
                        .has_states = directions == 1});
      if (directions == 1) declare_last_states(graph_, layers.back());
    }

    in.xs = features();
    std::string h, last;  // outputs at all steps, and at the end of each direction, where the model answers there
    for (std::size_t c = 0; c < layers.size(); c += directions) {
      const bool added = config_.options.residual && c > 0;
      if (c > 0) in.xs = config_.options.layer_norm ? normalised(h, c / directions + 1) : h;
      std::vector<std::string> ys, ends;
      for (std::size_t d = 0; d < directions; ++d) ys.push_back(write_layer(graph_, layers[c + d], in, names_));
      const std::string all = joined(ys);
      h = added ? graph_.node("Add", {h, all}) : all;
      if (shape.every_step || (c + directions < layers.size() && !config_.options.residual)) continue;
      for (std::size_t d = 0; d < directions; ++d) ends.push_back(at_end(ys[d], d == 1));
      const std::string end = joined(ends);
      last = added ? graph_.node("Add", {last, end}) : end;
    }
    const std::string V = graph_.node("Transpose", {constant("head.V")}, {{"perm", std::vector<std::int64_t>{1, 0}}});
    answers(graph_.node("Add", {graph_.node("MatMul", {shape.every_step ? h : last, V}), constant("head.c")}));
    return std::move(graph_);
  }

 private:
  std::string constant(const std::string& parameter) { return graph_.constant(parameters_.at(parameter), parameter); }

  /// The first layer's input [time, batch, width].
  std::string features() {
    if (config_.shape.vocabulary > 0 && config_.options.input == "one-hot") {
      const Tensor values = Tensor::from<float>({0, 1}, {2});  // ONNX Runtime has no OneHot of f64
      const std::string x =
          graph_.node("OneHot", {"x", graph_.integers({config_.shape.vocabulary}), graph_.constant(values)});
      return graph_.node("Cast", {x}, {{"to", onnx_number(onnx_type(config_.dtype))}});
    }
    if (config_.shape.vocabulary > 0) return graph_.node("Gather", {constant("embedding"), "x"});
    if (!spec_) return "x";
    std::string x = "x";
    if (spec_->missing == "zero")
      x = graph_.node("Where", {graph_.node("IsNaN", {x}), graph_.scalar(0, DType::f64), x});
    const auto column = [&](double ScaledColumn::*member) {
      return graph_.constant(numbers_of(spec_->inputs, member, DType::f64));
    };
    x = graph_.node("Sub", {x, column(&ScaledColumn::mean)});
    x = graph_.node("Div", {x, column(&ScaledColumn::deviation)});
    return graph_.node("Cast", {x}, {{"to", onnx_number(onnx_type(config_.dtype))}});
  }

  std::string normalised(const std::string& h, std::size_t layer) {
    const std::string name = fmt::format("norm{}.", layer);
    return graph_.node("LayerNormalization", {h, constant(name + "gain"), constant(name + "bias")},
                       {{"axis", -1}, {"epsilon", 1e-5}});
  }

  std::string joined(const std::vector<std::string>& parts) {
    return parts.size() == 1 ? parts[0] : graph_.node("Concat", parts, {{"axis", -1}});
  }

  /// The outputs at a sequence's end, [batch, width]: the last step, or the first one of a reversed layer.
  std::string at_end(const std::string& ys, bool reverse) {
    const std::string index = graph_.node("Squeeze", {graph_.integers({reverse ? 0 : -1})});
    return graph_.node("Gather", {ys, index}, {{"axis", 0}});
  }

  void answers(const std::string& outputs) {
    if (!spec_) return graph_.node_called({"y"}, "Identity", {outputs});
    if (spec_->classifies()) return graph_.node_called({"y"}, "Softmax", {outputs}, {{"axis", -1}});
    const auto column = [&](double ScaledColumn::*member) {
      return graph_.constant(numbers_of(spec_->targets, member, DType::f64));
    };
    // in f32 a target such as a time in seconds would lose its last digits, which predict keeps
    const std::string wide = graph_.node("Cast", {outputs}, {{"to", onnx_number(OnnxType::f64)}});
    const std::string scaled = graph_.node("Mul", {wide, column(&ScaledColumn::deviation)});
    graph_.node_called({"y"}, "Add", {scaled, column(&ScaledColumn::mean)});
  }

  const ModelConfig& config_;
  const Model& model_;
  const std::optional<TableSpec>& spec_;
  ConstantNames names_;
  std::map<std::string, Tensor> parameters_;
  OnnxGraph graph_;
};

nlohmann::json listed(const std::vector<std::string>& names) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& name : names) list.push_back(name);
  return list;
}

std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

OnnxGraph onnx_of_cell(const std::string& name, const Cell& cell, bool lengths) {
  require_states(name, cell);
  OnnxGraph graph;
  const OnnxLayer layer{.cell = cell};
  const OnnxType type = onnx_type(real_of(cell.initial(1).at(0).dtype()));
  graph.input("x", type, {"time", "batch", cell.input});
  graph.output("y", type, {"time", "batch", cell.outputs()});
  const OnnxSequences in = sequences_of(graph, lengths);
  declare_last_states(graph, layer);
  graph.node_called({"y"}, "Identity", {write_layer(graph, layer, in, names_of(cell.parameters()))});
  graph.metadata("reel.cell", name);
  return graph;
}

OnnxGraph onnx_of_model(const TrainedModel& trained, const std::optional<TableSpec>& spec, bool lengths) {
  OnnxGraph graph = ModelWriter(trained, spec).write(lengths);
  graph.metadata("reel.model", model_config_text(trained.config));
  if (!spec) return graph;
  graph.metadata("reel.inputs", text_of(listed(spec->input_names())));
  graph.metadata(spec->classifies() ? "reel.classes" : "reel.targets",
                 text_of(listed(spec->classifies() ? spec->classes : spec->target_names())));
  if (spec->window > 0) graph.metadata("reel.window", fmt::format("{}", spec->window));
  return graph;
}

}  // namespace reel
