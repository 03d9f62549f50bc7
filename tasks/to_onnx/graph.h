// An ONNX graph that is being made: nodes, constants, inputs and outputs. Only graph.cpp sees ONNX's classes.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/core/tensor.h"

namespace reel {

class OnnxGraph;

/// An attribute of a node: an integer, a float, a list of integers, a text, or the body of a loop.
using OnnxAttribute = std::variant<std::int64_t, double, std::vector<std::int64_t>, std::string, const OnnxGraph*>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;
/// An extent: a number, or the name of one that is known when the model runs.
using OnnxDim = std::variant<std::int64_t, std::string>;

/// The types of inputs and outputs.
enum class OnnxType { f32, f64, i32, i64, boolean };
/// Throws Error for complex numbers, which ONNX does not have.
OnnxType onnx_type(DType dtype);
/// Its number in ONNX's files, for Cast.
std::int64_t onnx_number(OnnxType type);

class OnnxGraph {
 public:
  /// The graph of an empty model.
  OnnxGraph();
  ~OnnxGraph();
  OnnxGraph(OnnxGraph&&) noexcept;
  OnnxGraph& operator=(OnnxGraph&&) noexcept;
  /// The body of a loop within this graph. Its constants are those of the whole model.
  OnnxGraph body() const;

  /// Adds a node and returns the name of its only result.
  std::string node(const std::string& type, const std::vector<std::string>& in, const OnnxAttributes& attributes = {});
  /// Adds a node whose results have these names.
  void node_called(const std::vector<std::string>& results, const std::string& type, const std::vector<std::string>& in,
                   const OnnxAttributes& attributes = {});
  /// A name that nothing has yet: "add_7".
  std::string fresh(const std::string& kind) const;

  /// The name of a constant with the values of a real tensor on the CPU; the same storage has one constant.
  std::string constant(const Tensor& value, const std::string& name = "");
  /// The same for a number, [], and for a list of integers, i64 [n].
  std::string scalar(double value, DType dtype);
  std::string integers(const std::vector<std::int64_t>& values);

  /// Declares an input and an output, in the order in which a user has them.
  void input(const std::string& name, OnnxType type, const std::vector<OnnxDim>& dims);
  void output(const std::string& name, OnnxType type, const std::vector<OnnxDim>& dims);
  /// An input that may be left out: it is `value` then, whose leading extent may differ from that of what is given.
  void optional_input(const std::string& name, const Tensor& value, const std::vector<OnnxDim>& dims);
  /// A text that is kept with the model.
  void metadata(const std::string& key, const std::string& value);

  /// The whole model as the bytes of a file, which ONNX's own checker has accepted. Throws Error if it refuses, or the
  /// model has 2 GiB or more.
  std::string bytes(const std::string& version) const;

 private:
  struct Shared;
  struct Impl;
  explicit OnnxGraph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reel
