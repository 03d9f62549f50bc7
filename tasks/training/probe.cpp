#include "tasks/training/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/training/device.h"

namespace reel {

Tensors states_over_time(const Cell& cell, const Tensor& x, const Zoneout& zoneout) {
  const Tensors start = cell.initial(x.dim(1));
  if (!cell.recurrent()) return {scan(cell, start, x).hs};
  const auto step = [&](const Tensors& state, const Tensors& in) {
    Tensors next = zoneout.mean(state, cell.step(state, in[0]));
    Tensors shown = next;
    return Next{std::move(next), std::move(shown)};
  };
  return scan(step, start, {x}).ys;
}

std::vector<std::string> state_names(const Cell& cell) {
  if (!cell.recurrent()) return {"h"};
  std::vector<std::string> names;
  for (const State& s : cell.states()) names.push_back(s.name);
  return names;
}

namespace {

/// Rows `first` to `last` of the identity with n columns. For complex states there are twice as many rows: those of the
/// real parts, then those of the imaginary parts.
Tensor cotangents(std::int64_t first, std::int64_t last, std::int64_t n, const Tensor& like) {
  const Tensor whole = eye(n, real_of(like.dtype()), like.backend());
  if (!is_complex(like.dtype())) return slice(whole, 0, first, last);
  const Tensor none = Tensor::zeros({n, n}, whole.dtype(), like.backend());
  return complex(slice(concat({whole, none}, 0), 0, first, last), slice(concat({none, whole}, 0), 0, first, last));
}

}  // namespace

Tensor step_jacobian(const Cell& cell, const Tensors& states, const Tensor& x, const Zoneout& zoneout) {
  // Each row of the batch is the same step, with the cotangent of another element of the new states.
  Backend& host = backend("cpu");
  const auto real_width = [](const Tensor& s) { return is_complex(s.dtype()) ? 2 * s.dim(1) : s.dim(1); };
  Tensors bands;  // the rows of each new state
  for (std::size_t s = 0; s < states.size(); ++s) {
    const std::int64_t rows = real_width(states[s]);
    Tensors before;
    const Tape tape;  // from here on, as a step may return a state that it was given
    for (const Tensor& state : states) before.push_back(expand(state, {rows, state.dim(1)}));
    const Tensor after = zoneout.mean(before, cell.step(before, expand(x, {rows, x.dim(1)})))[s];
    Tensors columns;
    for (const Tensor& g : grad({after}, before, {.cotangents = {cotangents(0, rows, states[s].dim(1), after)}}))
      columns.push_back(is_complex(g.dtype()) ? concat({real(g), imag(g)}, 1) : g);
    const NoGrad no_grad;
    bands.push_back(cast(on(concat(columns, 1), host), DType::f64));
  }
  return concat(bands, 0);
}

JacobianNorms jacobian_norms(const Cell& cell, const Tensor& x, std::int64_t points, const Zoneout& zoneout) {
  const std::int64_t T = x.dim(0), I = x.dim(2), apart = (T + points - 1) / points;
  JacobianNorms out;
  for (std::int64_t t = 0; t < T; t += apart) out.times.push_back(t);
  const auto n = out.times.size();
  std::vector<std::int32_t> places(out.times.begin(), out.times.end());
  const Tensor times = Tensor::from<std::int32_t>(places, {std::ssize(out.times)}, x.backend());
  const Tensors states = states_over_time(cell, x, zoneout);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  out.norms.assign(states.size(), std::vector<double>(n * n, nan));

  for (std::size_t s = 0; s < states.size(); ++s) {
    // Each row of the batch is the same sequence, with the cotangent of another element of the state, so a backward
    // pass from time t gives that many rows of the Jacobians J of t. The norms come from their sums of J^T J.
    const std::int64_t width = states[s].dim(2), rows = is_complex(states[s].dtype()) ? 2 * width : width;
    if (width == 0) continue;  // there is no Jacobian, and no norm
    const std::int64_t together = std::clamp<std::int64_t>((std::int64_t{1} << 24) / (T * width), 1, rows);
    Tensors grams(n);  // [u, I, I]
    for (std::int64_t first = 0; first < rows; first += together) {
      const std::int64_t last = std::min(rows, first + together);
      const Tensor xs = expand(x, {T, last - first, I});
      const Tape tape;
      const Tensor over_time = states_over_time(cell, xs, zoneout)[s];
      for (std::size_t r = 0; r < n; ++r) {
        const Tensor state = at(over_time, out.times[r]);
        const Tensor all = grad({state}, {xs}, {.cotangents = {cotangents(first, last, width, state)}})[0];
        const NoGrad no_grad;
        const Tensor J = cast(embedding(times, all), DType::f64);  // [u, rows, I]
        const Tensor gram = matmul(J, J, {.transpose_a = true});
        grams[r] = grams[r].defined() ? grams[r] + gram : gram;
      }
    }
    for (std::size_t r = 0; r < n; ++r) {
      const Tensor seen = slice(grams[r], 0, 0, static_cast<std::int64_t>(r) + 1);
      const auto squares = max(eigh(seen).values, {-1}).values<double>();
      for (std::size_t c = 0; c <= r; ++c) out.norms[s][r * n + c] = std::sqrt(std::max(0.0, squares[c]));
    }
  }
  return out;
}

}  // namespace reel
