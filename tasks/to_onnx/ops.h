// How each op of Reel is written in ONNX.
#pragma once
#include "engine/scan/program.h"
#include "ops/attributes.h"
#include "tasks/to_onnx/graph.h"

namespace reel {

/// A value of a program in an ONNX graph: its name, or for a complex one the names of its real and imaginary part.
struct OnnxValue {
  std::string re, im = {};  // im: empty for 0, and of real values
};

/// The imaginary part of a complex value, also where it is 0; of numbers of this dtype.
std::string imaginary(OnnxGraph& graph, const OnnxValue& value, DType dtype);

/// Extents as they are, and as they are for another size of the batch.
struct OnnxShape {
  // Primes, so that no extent of a model is a multiple of both by chance; nothing of this size is computed.
  static constexpr std::int64_t batch_here = 1009, batch_there = 1013;
  Shape here, there;
};

/// A call of an op that is being written.
struct OnnxCall {
  OnnxGraph& graph;
  const Program::Node& node;
  std::vector<OnnxValue> in;
  std::vector<Spec> specs;  // of the arguments
  Spec result;
  OnnxShape shape;    // of the result
  std::string batch;  // the name of the batch's size, i64 [1]
  Attributes attributes = attributes_of(*node.op, node.attrs);

  std::int64_t integer(const char* name) const { return static_cast<std::int64_t>(attributes.at(name).at(0)); }
  double number(const char* name) const { return attributes.at(name).at(0); }
  /// Throws Error: the op, why it cannot be written, and its line.
  [[noreturn]] void refuse(const std::string& why) const;
};

/// Writes the call as nodes of its graph and returns their result. Throws Error if there is no rule for the op.
OnnxValue write_op(OnnxCall& call);

/// The names of the ops that can be written.
std::vector<std::string> onnx_ops();

}  // namespace reel
