// A program: a function of tensors, traced once on shapes. It is a tape with ids in place of values, so it can be
// evaluated many times, and the passes of scan can inspect and rewrite it.
#pragma once
#include <algorithm>
#include <functional>
#include <ranges>

#include "engine/autodiff/tape.h"

namespace reel {

struct Program {
  struct Node {
    const Op* op;
    Attrs attrs;
    Loc where;
    std::vector<int> in;
    int out;          // the first output's id; the others follow it
    int num_outputs;  // how many
    /// The ids of the outputs.
    auto outputs() const { return std::views::iota(out, out + num_outputs); }
  };
  /// By id: inputs first, then consts, then the nodes' outputs in order.
  std::vector<Spec> values;
  int inputs = 0;
  int consts = 0;
  std::vector<Node> nodes;
  std::vector<int> outputs;

  /// Is the node faster outside a time loop, where it runs once for all time steps?
  bool worth_hoisting(const Node& node) const;
  bool is_const(int id) const { return id >= inputs && id < inputs + consts; }
  /// Abstract tensors with the specs of a node's inputs, for the op's functions that only read shapes.
  Tensors abstract_inputs(const Node& node) const;
  /// The index of the node that produces a value, or -1 for inputs and consts.
  int producer(int id) const;
  enum class Text {
    plain,
    costs,  // with the operations and the memory traffic of each node
  };
  /// One line per node: "%5 = matmul(%0, %3) f32 (20, 128)".
  std::string str(Text text = Text::plain) const;
  /// What a node computes, in additions, and the bytes that it reads and writes.
  struct Cost {
    double flops = 0, bytes = 0;
  };
  Cost cost(const Node& node) const;
};

/// A program and its consts: the tensors that the traced function used besides its inputs.
struct Traced {
  Program program;
  Tensors consts;
};

using Function = std::function<Tensors(const Tensors&)>;

/// Traces f: calls it once on abstract tensors of these specs. Nodes that no output needs are left out.
Traced trace(const std::vector<Spec>& inputs, const Function& f);

/// Applies one node to values, indexed by id; the current tape decides whether it is computed, recorded or traced.
void apply_node(const Program::Node& node, Tensors& values);

/// Evaluates the program on these inputs and consts, node by node through apply().
Tensors eval(const Program& program, const Tensors& inputs, const Tensors& consts);

/// The program without the inputs, consts and results that are not marked. A node with several results is kept with all
/// of them, if one is marked.
Program subset(const Program& program, const std::vector<char>& marked);

/// Is one of these values marked?
bool any_marked(const std::vector<char>& marked, const auto& ids) {
  return std::ranges::any_of(ids, [&](int s) { return marked[static_cast<std::size_t>(s)] != 0; });
}
/// Marks all values that the marked ones depend on.
void mark_ancestors(const Program& program, std::vector<char>& marked);
/// Marks all values that depend on a marked one.
void mark_descendants(const Program& program, std::vector<char>& marked);

}  // namespace reel
