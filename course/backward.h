// Lecture 3: one operation of Reel's tape, backwards.
#pragma once
#include "ops/ops.h"

namespace course {

/// The gradients of all inputs of operation `i` of a tape, from the gradient of its result: what the operation's author
/// wrote. Of an input that was broadcast it still has the shape of the result. Undefined: there is none.
inline reel::Tensors backward(const reel::Tape& tape, std::size_t i, const reel::Tensor& d_result) {
  const reel::NoGrad pause;  // these operations are not recorded
  const reel::Tape::Node& node = tape.node(i);
  const auto in = tape.inputs(node), out = tape.outputs(node);
  reel::Tensors d(in.size());
  const std::vector<char> needs(in.size(), 1);
  reel::Vjp vjp(*node.op, node.where, in, out, tape.versions(node), {&d_result, 1}, needs, d);
  node.op->vjp(node.attrs, vjp);
  return d;
}

}  // namespace course
