// Assignment 5: a step, and passes over programs. Replace each BLANK.
#pragma once
#include <numeric>

#include "course/check.h"
#include "course/lem.h"
#include "engine/scan/program.h"

namespace answer {

using namespace reel;
using course::Lem;

/// A step of LEM (Rusch et al. 2022). The state is {y, z}, two tensors [B, n]; x is [B, i]. Returns the next {y, z}:
///   d1 = sigmoid(W1 y + V1 x + b1)            how far z moves in this step
///   d2 = sigmoid(W2 y + V2 x + b2)            how far y moves
///   z' = (1 - d1) z + d1 tanh(Wz y + Vz x + bz)
///   y' = (1 - d2) y + d2 tanh(Wy z' + Vy x + by)
/// Each layer is a function: p.one(y, x) is W1 y + V1 x + b1; then p.two, p.z and p.y.
inline Tensors lem(const Tensors& state, const Tensor& x, const Lem& p) { BLANK; }

/// By id, 1 or 0: is this value an output, or does an output depend on it? program.values.size() is the number of
/// values, program.outputs are the ids of the outputs. A node of program.nodes reads the values node.in, and its
/// results are the values from node.out to node.out + node.num_outputs - 1. Nodes read only values with smaller ids.
inline std::vector<char> needed(const Program& program) { BLANK; }

/// The program without common subexpressions: of calls that compute the same, the first stays, and all that read
/// another one read the first. Two calls compute the same if op and inputs are equal and node.op->same(node.attrs,
/// other.attrs) is true. subset(program, marks) is the program without the values that are not marked; its inputs and
/// consts must stay, for callers pass them by position.
inline Program common(Program program) { BLANK; }

}  // namespace answer
