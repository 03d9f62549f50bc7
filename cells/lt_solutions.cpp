#include "cells/lt_solutions.h"

#include <cmath>
#include <numbers>

namespace reel {

namespace {

Tensor tensor_of(const std::vector<double>& values, const Shape& shape, const Init& init) {
  return cast(Tensor::from(std::span<const double>(values), shape, *init.backend), init.dtype);
}

std::unique_ptr<Cell> cell_of(const std::string& name, std::int64_t i, std::int64_t n,
                              const std::map<std::string, std::string>& given, Init& init,
                              const std::map<std::string, Tensor>& weights) {
  const CellType& type = cell_type(name);
  std::unique_ptr<Cell> cell = type.make(i, n, Settings(type.name, type.settings, given), init);
  for (const Parameter& p : cell->parameters()) Tensor(p.value).assign(weights.at(p.name));
  return cell;
}

std::unique_ptr<Cell> lt_rnn(std::int64_t i, std::int64_t n, const std::string& activation, Init& init,
                             const std::map<std::string, Tensor>& weights) {
  return cell_of("lt_rnn", i, n, {{"activation", activation}, {"init", "identity"}}, init, weights);
}

}  // namespace

// A symbol is a random direction u. V rotates plane j by 2 pi l_j / (T + S), so V^(T+S) = I: T + S steps after its
// input, when it must be output, u is back where it was, while symbols from other times point in random directions. One
// extra unit, s, which V leaves unchanged, separates the two halves: each data symbol lowers it by alpha, down to
// -alpha S, and the delimiter raises it to +alpha S. It adds -alpha s to the scores of data and delimiter and -2 alpha
// s to the score of the blank, so the blank wins before the delimiter, and the best data symbol wins after it.
LtSolution copying_solution(std::int64_t K, std::int64_t S, std::int64_t T, std::int64_t planes, Init& init) {
  for (const auto& [name, value] : {std::pair{"K", K}, {"S", S}, {"T", T}, {"planes", planes}}) {
    if (value < 1) throw Error("copying_solution", fmt::format("{} of 1 or more is needed, got {}", name, value));
  }
  constexpr double alpha = 2;
  const std::int64_t n = 2 * planes + 1;

  std::vector<double> V(static_cast<std::size_t>(n * n));
  const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
    return V[static_cast<std::size_t>(row * n + column)];
  };
  Stream random(init.seed(), init.stream());
  for (std::int64_t j = 0; j < 2 * planes; j += 2) {
    const auto l = static_cast<double>(1 + random.below(T + S));
    const double angle = 2 * std::numbers::pi * l / static_cast<double>(T + S);
    at(j, j) = at(j + 1, j + 1) = std::cos(angle);
    at(j, j + 1) = -std::sin(angle);
    at(j + 1, j) = std::sin(angle);
  }
  at(n - 1, n - 1) = 1;

  const Tensor any = init.normal({K, 2 * planes}, 1), u = any / norm(any, 2, {1}, true);  // rows of unit norm
  std::vector<double> last(static_cast<std::size_t>(K + 2), -alpha), scale(static_cast<std::size_t>(K + 2), 1);
  last.front() = -2 * alpha;
  scale.front() = 0;                           // blanks leave the state unchanged
  scale.back() = -2 * static_cast<double>(S);  // the delimiter takes s from -alpha S to +alpha S
  const Tensor U = concat({pad(u, 0, 1, 1), tensor_of(last, {K + 2, 1}, init)}, 1);  // [K + 2, n]
  const Tensor W = transpose(U) * tensor_of(scale, {K + 2}, init);                   // [n, K + 2]
  return {lt_rnn(K + 2, n, "identity", init, {{"W", W}, {"V", tensor_of(V, {n, n}, init)}}), U};
}

LtSolution adding_solution(Init& init) {
  const Tensor one = init.constant({1, 1}, 1);
  return {lt_rnn(2, 1, "relu", init, {{"W", init.constant({1, 2}, 1)}, {"b", init.constant({1}, -1)}, {"V", one}}),
          one};
}

LtSolution lstm_adding_solution(Init& init) {
  constexpr double s = 1e-3, open = 40;  // sigmoid(40) is 1, and sigmoid(-40) 0, as far as f64 can tell them apart
  const auto row = [&](double value, double marker) { return tensor_of({value, marker}, {1, 2}, init); };
  const Tensor zero = init.constant({1, 1}, 0), shut = init.constant({1}, -open), held = init.constant({1}, open);
  return {cell_of("lstm", 2, 1, {{"biases", "1"}}, init,
                  {{"W_i", row(0, 2 * open)},
                   {"R_i", zero},
                   {"b_i", shut},
                   {"W_f", row(0, 0)},
                   {"R_f", zero},
                   {"b_f", held},
                   {"W_g", row(s, 0)},
                   {"R_g", zero},
                   {"b_g", init.constant({1}, 0)},
                   {"W_o", row(0, 0)},
                   {"R_o", zero},
                   {"b_o", held}}),
          init.constant({1, 1}, 1 / s)};
}

}  // namespace reel
