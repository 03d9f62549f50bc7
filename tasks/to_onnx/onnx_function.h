// A function of the rows of a batch, as nodes of an ONNX graph.
#pragma once
#include <map>

#include "tasks/to_onnx/ops.h"

namespace reel {

/// Names of constants, by where their elements are: parameters keep their names in the file.
using ConstantNames = std::map<const void*, std::string>;

/// A function of tensors [B, ...] that is traced at two sizes of the batch: what differs between them depends on the
/// batch, so the nodes fit any. What depends on constants alone, such as an orthogonal matrix that is made of its
/// parameters, is computed now.
class OnnxFunction {
 public:
  /// Takes the specs of the inputs for a batch of B.
  OnnxFunction(const std::function<std::vector<Spec>(std::int64_t B)>& inputs, const Function& f);

  /// Writes the function of these values; `batch` is the name of the batch's size, i64 [1]. Throws Error for an op that
  /// ONNX does not have, and for constants that are made for one size of the batch.
  std::vector<OnnxValue> write(OnnxGraph& graph, const std::vector<OnnxValue>& inputs, const std::string& batch,
                               const ConstantNames& names) const;

 private:
  Traced here_, there_;
};

/// A constant as a value: a complex one has a constant for each part.
OnnxValue constant_value(OnnxGraph& graph, const Tensor& value, const std::string& name = "");

}  // namespace reel
