// The tape: what was computed, in order. While a Tape object lives, every op call is written at its end; grad() reads
// it backwards. There is no graph of pointers: a node is a row of an array, its values are rows of another.
#pragma once
#include <deque>

#include "engine/op.h"

namespace reel {

class Tape {
 public:
  enum class Mode {
    eager,     // ops have their values at once
    symbolic,  // ops have shapes only: a program is being traced
  };

  /// Becomes the current tape of this thread until it goes out of scope.
  explicit Tape(Mode mode = Mode::eager);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// The tape that op calls of this thread are written to; null when there is none or it is paused.
  static Tape* current();

  struct Node {
    const Op* op;
    Attrs attrs;
    Where where;
    std::size_t first;  // place in values() of the first input; the outputs follow the inputs
    std::uint32_t ins, outs;
    bool given;  // the outputs were known without running the op (see record)
  };

  Mode mode() const { return mode_; }
  std::size_t size() const { return arrays_.nodes.size(); }
  const Node& node(std::size_t i) const { return arrays_.nodes[i]; }
  std::span<const Tensor> inputs(const Node& n) const { return {arrays_.values.data() + n.first, n.ins}; }
  std::span<const Tensor> outputs(const Node& n) const { return {arrays_.values.data() + n.first + n.ins, n.outs}; }
  std::span<const std::uint32_t> versions(const Node& n) const {
    return {arrays_.versions.data() + n.first, n.ins + n.outs};
  }
  /// Values made while this tape was current have ids from here on; those with smaller ones are leaves.
  std::uint64_t first_id() const { return first_id_; }

  /// Writes a call at the end. `given` says that the outputs are known already, so that a traced program need not
  /// contain the call, while its derivative is still that of the op.
  void record(const Op& op, const Attrs& attrs, Inputs in, std::span<const Tensor> out, const Where& where,
              bool given = false);

 private:
  struct Arrays {
    std::vector<Node> nodes;
    std::vector<Tensor> values;
    std::vector<std::uint32_t> versions;
  };
  /// The arrays of the last tape of this thread, empty: the next one need not grow its own.
  static Arrays& spare();

  Mode mode_;
  Tape* outer_;
  std::uint64_t first_id_;
  Arrays arrays_;
};

/// Op calls are not written to any tape while this object lives.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  Tape* paused_;
};

struct GradOptions {
  bool create_graph = false;  // write the gradient's own ops to the tape, so that it can be differentiated again
  Tensors cotangents = {};    // gradient with respect to each output; without it outputs are scalars and get 1
};

/// Gradients of the sum of outputs (each times its cotangent) with respect to xs, one for each, with the shape of x.
/// Convention for complex x: dL/dRe x + i dL/dIm x. An x that the outputs do not depend on gets zeros.
/// Throws Error when there is no tape, an output is not a scalar and has no cotangent, an op on the way declares that
/// it has no derivative, or a value that a derivative needs was changed in place.
Tensors grad(const Tensors& outputs, const Tensors& xs, const GradOptions& options = {},
             Where where = Where::current());

/// The same for one output, for structured bindings: auto [dW, db] = grad(loss, {W, b});
template <std::size_t N>
std::array<Tensor, N> grad(const Tensor& output, const Tensor (&xs)[N], const GradOptions& options = {},
                           Where where = Where::current()) {
  Tensors list = grad(Tensors{output}, Tensors(xs, xs + N), options, where);
  std::array<Tensor, N> out;
  std::move(list.begin(), list.end(), out.begin());
  return out;
}

}  // namespace reel
