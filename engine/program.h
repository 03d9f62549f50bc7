// A program: a function of tensors written down once, on shapes. It is a tape with numbers in place of values, so it
// can be run many times, looked through, and taken apart by the passes of scan.
#pragma once
#include <functional>

#include "engine/tape.h"

namespace reel {

/// Slots and nodes are counted in int, arrays in std::size_t.
constexpr std::size_t ix(int i) { return static_cast<std::size_t>(i); }

struct Program {
  struct Node {
    const Op* op;
    Attrs attrs;
    Where where;
    std::vector<int> in;
    int out;   // the first output's slot; the others follow it
    int outs;  // how many
  };
  /// Slots are the program's values: inputs first, then captures, then the nodes' outputs in order.
  std::vector<Spec> slots;
  int inputs = 0;
  int captures = 0;
  std::vector<Node> nodes;
  std::vector<int> outputs;

  /// Does a node gain by leaving a loop over time, where it runs once for all times?
  bool gains_outside(const Node& node) const;
  bool is_capture(int slot) const { return slot >= inputs && slot < inputs + captures; }
  /// Abstract tensors in place of a node's inputs, for what an op says of their shapes.
  Tensors stand_ins(const Node& node) const;
  /// The node that makes a slot, or -1 for inputs and captures.
  int maker(int slot) const;
  /// One line a node: "%5 = matmul(%0, %3) f32 (20, 128)".
  std::string str() const;
};

/// A program and the tensors it took from around it, in the order of its capture slots.
struct Traced {
  Program program;
  Tensors captures;
};

using Function = std::function<Tensors(const Tensors&)>;

/// Calls f once on abstract tensors of these specs and writes down what it does. Nodes that no output needs are left
/// out.
Traced trace(const std::vector<Spec>& inputs, const Function& f);

/// Runs one node on values[slot], through apply(): computed, recorded or traced as the current tape says.
void apply_node(const Program::Node& node, Tensors& values);

/// The program as a function: its outputs for these inputs and captures, through apply().
Tensors replay(const Program& program, const Tensors& inputs, const Tensors& captures);

/// Marks all slots that the marked ones are made from.
void mark_ancestors(const Program& program, std::vector<char>& marked);

}  // namespace reel
