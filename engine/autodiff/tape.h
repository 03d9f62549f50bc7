// The tape: a list of op calls in order. While a Tape object is alive, every op call is appended to it; grad() walks it
// backwards. There is no graph of pointers: nodes are elements of an array, and their values are elements of another.
#pragma once
#include "engine/autodiff/op.h"

namespace reel {

class Tape {
 public:
  enum class Mode {
    eager,     // ops compute their values immediately
    symbolic,  // ops infer shapes only: a program is being traced
  };

  /// Becomes the current tape of this thread until it goes out of scope.
  explicit Tape(Mode mode = Mode::eager);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// The tape that records op calls of this thread; null when there is none, or inside NoGrad.
  static Tape* current();

  struct Node {
    const Op* op;
    Attrs attrs;
    Loc where;
    std::size_t first;  // index of the first input in the tape's array of values; the outputs follow the inputs
    std::uint32_t ins, num_outputs;
    bool given;  // the outputs were known without running the op; see record()
  };

  Mode mode() const { return mode_; }
  std::size_t size() const { return arrays_.nodes.size(); }
  Node& node(std::size_t i) { return arrays_.nodes[i]; }
  const Node& node(std::size_t i) const { return arrays_.nodes[i]; }
  std::span<const Tensor> inputs(const Node& n) const { return {arrays_.values.data() + n.first, n.ins}; }
  std::span<const Tensor> outputs(const Node& n) const {
    return {arrays_.values.data() + n.first + n.ins, n.num_outputs};
  }
  std::span<const std::uint32_t> versions(const Node& n) const {
    return {arrays_.versions.data() + n.first, n.ins + n.num_outputs};
  }
  /// Values computed since this tape began have this id or larger ones; values with smaller ids are leaves.
  std::uint64_t first_id() const { return first_id_; }

  /// Records a call. `given` says that the outputs are already known: a traced program leaves the call out, but its
  /// gradient still uses the op's vjp.
  void record(const Op& op, const Attrs& attrs, Inputs in, std::span<const Tensor> out, const Loc& where,
              bool given = false);

 private:
  struct Arrays {
    std::vector<Node> nodes;
    std::vector<Tensor> values;
    std::vector<std::uint32_t> versions;
  };
  /// The emptied arrays of this thread's last tape, reused so that the next one need not grow its own.
  static Arrays& spare();

  Mode mode_;
  Tape* outer_;
  std::uint64_t first_id_;
  Arrays arrays_;
};

/// Suspends recording on this thread while this object is alive.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape* outer_;
};

struct GradOptions {
  bool create_graph = false;  // records the gradient's own ops, so that it can be differentiated again; without it a
                              // gradient is a constant, in a traced step, too
  Tensors cotangents = {};    // one for each output; without them outputs must be scalars and get 1
};

/// Gradients of the sum of outputs (each times its cotangent) with respect to xs; each has the shape of its x.
/// Convention for complex x: dL/dRe x + i dL/dIm x. An x that the outputs do not depend on gets zeros.
/// Throws Error when there is no tape, an output is not a scalar and has no cotangent, an op on the path is not
/// differentiable, or a value that a vjp needs was changed in place.
Tensors grad(const Tensors& outputs, const Tensors& xs, const GradOptions& options = {}, Loc where = Loc::current());

/// The same for one output, for structured bindings: auto [dW, db] = grad(loss, {W, b});
template <std::size_t N>
std::array<Tensor, N> grad(const Tensor& output, const Tensor (&xs)[N], const GradOptions& options = {},
                           Loc where = Loc::current()) {
  Tensors list = grad(Tensors{output}, Tensors(xs, xs + N), options, where);
  std::array<Tensor, N> out;
  std::move(list.begin(), list.end(), out.begin());
  return out;
}

}  // namespace reel
