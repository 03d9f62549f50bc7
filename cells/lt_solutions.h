// LT-RNNs that solve copying and adding with weights written down by hand (Henaff et al. 2016): what the architecture
// can do, whether training finds it or not.
#pragma once
#include "cells/cell.h"

namespace reel {

struct LtSolution {
  std::unique_ptr<Cell> cell;  // an LT-RNN
  Tensor U;                    // [o, n]: what it says is linear(h, U), without a bias
};

/// Copying of S symbols out of K after a delay T, by `planes` rotations, n = 2 planes + 1 units. Symbols go in as
/// one-hot rows of width K + 2 and come out as scores in the same order: 0 the blank, 1..K data, K + 1 the delimiter.
/// The rotations are random, so that some sequences come out wrong, the fewer the more planes; at the delimiter itself,
/// which calls for a blank, the symbol scores are up already. Throws Error when a number is below 1.
LtSolution copying_solution(std::int64_t K, std::int64_t S, std::int64_t T, std::int64_t planes, Init& init);

/// Adding by one unit, without error: h' = h + relu(value + marker - 1), inputs [value, marker], values in [0, 1].
LtSolution adding_solution(Init& init);

}  // namespace reel
