// Mistakes that many make in assignment 5: each gets a sentence of its own.
#pragma once
#include <numeric>

#include "course/check.h"
#include "course/lem.h"
#include "engine/scan/program.h"

namespace answer {

using namespace reel;
using course::Lem;

/// y reads the old z.
inline Tensors lem(const Tensors& state, const Tensor& x, const Lem& p) {
  const Tensor &y = state[0], &z = state[1];
  const Tensor d1 = sigmoid(p.one(y, x)), d2 = sigmoid(p.two(y, x));
  return {(1 - d2) * y + d2 * tanh(p.y(z, x)), (1 - d1) * z + d1 * tanh(p.z(y, x))};
}

/// Goes forwards: a value is read before its reader is known to be needed.
inline std::vector<char> needed(const Program& program) {
  std::vector<char> marks(program.values.size(), 0);
  for (const int id : program.outputs) marks[id] = 1;
  for (const Program::Node& node : program.nodes) {
    if (!marks[node.out]) continue;
    for (const int id : node.in) marks[id] = 1;
  }
  return marks;
}

/// Compares inputs before they are renamed and in any order, and no attributes; forgets second results, outputs, and
/// inputs that nothing reads.
inline Program common(Program program) {
  std::vector<int> first(program.values.size());
  std::iota(first.begin(), first.end(), 0);
  const auto sorted = [](std::vector<int> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Program::Node &node = program.nodes[i], &other = program.nodes[j];
      if (other.op != node.op || sorted(other.in) != sorted(node.in) || first[node.out] != node.out) continue;
      first[node.out] = other.out;
    }
  }
  for (Program::Node& node : program.nodes)
    for (int& id : node.in) id = first[id];
  std::vector<char> marks(program.values.size(), 0);
  for (const int id : program.outputs) marks[id] = 1;
  mark_ancestors(program, marks);
  return subset(program, marks);
}

}  // namespace answer
