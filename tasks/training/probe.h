// Looks inside a cell while it reads a sequence: its states over time, and how much each depends on each input.
#pragma once
#include "cells/cell.h"

namespace reel {

/// All states of a cell that reads x [T, B, input] from its initial state: each [T, B, width], in the order of
/// states(). A cell without recurrence has one, its output. With zoneout, states move to its mean, as outside training.
Tensors states_over_time(const Cell& cell, const Tensor& x, const Zoneout& zoneout = {});
/// The names of these states.
std::vector<std::string> state_names(const Cell& cell);

/// The Jacobian of a step, d s_t / d s_(t-1), of all states of a cell as one vector: f64 [N, N] on the CPU. `states`
/// are those before the step, each [1, width], and x is [1, input]. A complex state counts as its real and imaginary
/// parts. The cell must be recurrent.
Tensor step_jacobian(const Cell& cell, const Tensors& states, const Tensor& x, const Zoneout& zoneout = {});

/// Norms of Jacobians: norms[s] is [n, n], row by row, and holds ||d s_t / d x_u||, the largest singular value, for
/// state s at the times t = times[row] and u = times[column]; NaN for u > t.
struct JacobianNorms {
  std::vector<std::int64_t> times;
  std::vector<std::vector<double>> norms;
};
/// For one sequence x [T, 1, input], at up to `points` evenly spaced times. A complex state counts as its real and
/// imaginary parts.
JacobianNorms jacobian_norms(const Cell& cell, const Tensor& x, std::int64_t points, const Zoneout& zoneout = {});

}  // namespace reel
