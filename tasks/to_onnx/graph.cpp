#include "tasks/to_onnx/graph.h"

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace reel {

namespace {

constexpr std::int64_t opset = 17;  // the first with LayerNormalization
constexpr std::int64_t ir_version = 8;
constexpr std::size_t largest_file = (std::size_t{1} << 31) - 1;  // of protobuf

void describe(onnx::ValueInfoProto& info, const std::string& name, OnnxType type, const std::vector<OnnxDim>& dims) {
  info.set_name(name);
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(onnx_number(type)));
  tensor.mutable_shape();
  for (const OnnxDim& dim : dims) {
    if (const auto* n = std::get_if<std::int64_t>(&dim))
      tensor.mutable_shape()->add_dim()->set_dim_value(*n);
    else
      tensor.mutable_shape()->add_dim()->set_dim_param(std::get<std::string>(dim));
  }
}

void fill(onnx::TensorProto& out, const std::string& name, OnnxType type, const std::vector<std::int64_t>& dims,
          const void* data, std::size_t bytes) {
  out.set_name(name);
  out.set_data_type(static_cast<int>(onnx_number(type)));
  for (const std::int64_t n : dims) out.add_dims(n);
  out.set_raw_data(data, bytes);
}

}  // namespace

OnnxType onnx_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return OnnxType::f32;
    case DType::f64:
      return OnnxType::f64;
    case DType::i32:
      return OnnxType::i32;
    case DType::boolean:
      return OnnxType::boolean;
    default:
      throw Error("to_onnx", fmt::format("ONNX has no {}", name_of(dtype)));
  }
}

std::int64_t onnx_number(OnnxType type) {
  switch (type) {
    case OnnxType::f32:
      return onnx::TensorProto::FLOAT;
    case OnnxType::f64:
      return onnx::TensorProto::DOUBLE;
    case OnnxType::i32:
      return onnx::TensorProto::INT32;
    case OnnxType::i64:
      return onnx::TensorProto::INT64;
    case OnnxType::boolean:
      return onnx::TensorProto::BOOL;
  }
  return onnx::TensorProto::UNDEFINED;
}

/// The model, and what its graphs have in common.
struct OnnxGraph::Shared {
  onnx::ModelProto model;
  std::set<std::string> names;
  int count = 0;
  std::map<std::pair<const void*, std::string>, std::string> constants;  // by storage and spec
  Tensors kept;                                                          // so that no storage is used twice
  std::map<std::pair<DType, double>, std::string> scalars;
  std::map<std::vector<std::int64_t>, std::string> integers;
};

struct OnnxGraph::Impl {
  std::shared_ptr<Shared> shared;
  std::shared_ptr<onnx::GraphProto> own;  // of a body
  onnx::GraphProto& graph() { return own ? *own : *shared->model.mutable_graph(); }
};

OnnxGraph::OnnxGraph() : OnnxGraph(std::make_unique<Impl>(Impl{std::make_shared<Shared>(), nullptr})) {
  impl_->graph().set_name("reel");
}
OnnxGraph::OnnxGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OnnxGraph::~OnnxGraph() = default;
OnnxGraph::OnnxGraph(OnnxGraph&&) noexcept = default;
OnnxGraph& OnnxGraph::operator=(OnnxGraph&&) noexcept = default;

OnnxGraph OnnxGraph::body() const {
  OnnxGraph inner(std::make_unique<Impl>(Impl{impl_->shared, std::make_shared<onnx::GraphProto>()}));
  inner.impl_->graph().set_name("step");
  return inner;
}

std::string OnnxGraph::fresh(const std::string& kind) const {
  std::string stem = kind;
  std::transform(stem.begin(), stem.end(), stem.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string name;
  do name = fmt::format("{}_{}", stem, ++impl_->shared->count);
  while (!impl_->shared->names.insert(name).second);
  return name;
}

std::string OnnxGraph::node(const std::string& type, const std::vector<std::string>& in,
                            const OnnxAttributes& attributes) {
  const std::string result = fresh(type);
  node_called({result}, type, in, attributes);
  return result;
}

void OnnxGraph::node_called(const std::vector<std::string>& results, const std::string& type,
                            const std::vector<std::string>& in, const OnnxAttributes& attributes) {
  onnx::NodeProto& node = *impl_->graph().add_node();
  node.set_op_type(type);
  node.set_name(results[0]);
  for (const std::string& name : in) node.add_input(name);
  for (const std::string& name : results) node.add_output(name);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& a = *node.add_attribute();
    a.set_name(name);
    if (const auto* n = std::get_if<std::int64_t>(&value)) {
      a.set_type(onnx::AttributeProto::INT);
      a.set_i(*n);
    } else if (const auto* number = std::get_if<double>(&value)) {
      a.set_type(onnx::AttributeProto::FLOAT);
      a.set_f(static_cast<float>(*number));
    } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      a.set_type(onnx::AttributeProto::INTS);
      for (const std::int64_t one : *list) a.add_ints(one);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      a.set_type(onnx::AttributeProto::STRING);
      a.set_s(*text);
    } else {
      a.set_type(onnx::AttributeProto::GRAPH);
      *a.mutable_g() = std::get<const OnnxGraph*>(value)->impl_->graph();
    }
  }
}

std::string OnnxGraph::constant(const Tensor& value, const std::string& name) {
  Shared& all = *impl_->shared;
  const std::pair key(value.data(), value.spec().str());
  if (const auto found = all.constants.find(key); found != all.constants.end()) return found->second;
  const std::string own = !name.empty() && all.names.insert(name).second ? name : fresh("constant");
  fill(*all.model.mutable_graph()->add_initializer(), own, onnx_type(value.dtype()),
       {value.shape().begin(), value.shape().end()}, value.data(),
       static_cast<std::size_t>(value.numel()) * size_of(value.dtype()));
  all.kept.push_back(value);
  return all.constants[key] = own;
}

std::string OnnxGraph::scalar(double value, DType dtype) {
  std::string& name = impl_->shared->scalars[{dtype, value}];
  if (name.empty()) name = constant(Tensor::full({}, value, dtype));
  return name;
}

std::string OnnxGraph::integers(const std::vector<std::int64_t>& values) {
  std::string& name = impl_->shared->integers[values];
  if (name.empty()) {
    name = fresh("integers");
    fill(*impl_->shared->model.mutable_graph()->add_initializer(), name, OnnxType::i64, {std::ssize(values)},
         values.data(), values.size() * sizeof(std::int64_t));
  }
  return name;
}

void OnnxGraph::input(const std::string& name, OnnxType type, const std::vector<OnnxDim>& dims) {
  impl_->shared->names.insert(name);
  describe(*impl_->graph().add_input(), name, type, dims);
}

void OnnxGraph::optional_input(const std::string& name, const Tensor& value, const std::vector<OnnxDim>& dims) {
  input(name, onnx_type(value.dtype()), dims);
  fill(*impl_->graph().add_initializer(), name, onnx_type(value.dtype()), {value.shape().begin(), value.shape().end()},
       value.data(), static_cast<std::size_t>(value.numel()) * size_of(value.dtype()));
}

void OnnxGraph::output(const std::string& name, OnnxType type, const std::vector<OnnxDim>& dims) {
  describe(*impl_->graph().add_output(), name, type, dims);
}

void OnnxGraph::metadata(const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *impl_->shared->model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

std::string OnnxGraph::bytes(const std::string& version) const {
  onnx::ModelProto& model = impl_->shared->model;
  model.set_ir_version(ir_version);
  model.set_producer_name("Reel");
  model.set_producer_version(version);
  if (model.opset_import_size() == 0) model.add_opset_import()->set_version(opset);
  if (model.ByteSizeLong() > largest_file)
    throw Error("to_onnx", fmt::format("a file of ONNX has less than 2 GiB, this model {}", model.ByteSizeLong()));
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& e) {
    throw Error("to_onnx", fmt::format("ONNX's checker refuses the model: {}", e.what()));
  }
  return model.SerializeAsString();
}

}  // namespace reel
