// LT-RNNs that solve copying and adding with hand-written weights (Henaff et al. 2016): they show what the architecture
// can do, whether or not training finds it.
#pragma once
#include "cells/cell.h"

namespace reel {

struct LtSolution {
  std::unique_ptr<Cell> cell;  // an LT-RNN, or an LSTM
  Tensor U;                    // [o, n]: the output is linear(h, U), without a bias
};

/// Copies S symbols out of K after a delay T, with `planes` rotations and n = 2 planes + 1 units. Inputs are one-hot
/// rows of width K + 2; outputs are scores in the same order: 0 the blank, 1..K data, K + 1 the delimiter. The
/// rotations are random, so some sequences come out wrong, fewer with more planes. At the delimiter itself, where a
/// blank is expected, the data scores are already up. Throws Error when an argument is below 1.
LtSolution copying_solution(std::int64_t K, std::int64_t S, std::int64_t T, std::int64_t planes, Init& init);

/// Solves adding with one unit, exactly: h' = h + relu(value + marker - 1), inputs [value, marker], values in [0, 1].
LtSolution adding_solution(Init& init);
/// The same by an LSTM of one unit, whose input gate is the marker: c' = c + marker tanh(s value), h = tanh(c), the
/// output h / s. With s = 1/1000 its sums are wrong by 10 s^2 / 3 = 3.4e-6 at most, before rounding.
LtSolution lstm_adding_solution(Init& init);

}  // namespace reel
