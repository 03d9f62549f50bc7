// LT-RNN beyond its step: scaled gradients, soft orthogonality, and the solutions set by hand.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cells/lt_solutions.h"
#include "tests/support/check.h"
#include "tests/support/table.h"

using namespace reel;
using namespace reel::test;

namespace {

std::unique_ptr<Cell> make(std::int64_t i, std::int64_t n, const std::map<std::string, std::string>& given) {
  const CellType& type = cell_type("lt_rnn");
  Init init(3, DType::f64);
  return type.make(i, n, Settings(type.name, type.settings, given), init);
}

Tensor named(const Cell& cell, const std::string& name) {
  for (const Parameter& p : cell.parameters()) {
    if (p.name == name) return p.value;
  }
  return {};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.values<double>(), y = b.values<double>();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("scale_gradient keeps every bit of the value and multiplies gradients of each order, in loops as well") {
  const Tensor x = Tensor::from<double>({-0.0, 1e-310, NAN, -INFINITY, 0.1, 7}, {6});
  CHECK(same_bits(scale_gradient(x, 0.5), x));

  const Tensor a = random({4}, 1);
  Tape tape;
  const auto [first] = grad(sum(sin(scale_gradient(a, 0.25))), {a}, {.create_graph = true});
  CHECK(difference(first, 0.25 * cos(a)) < 1e-15);
  const auto [second] = grad(sum(first), {a});
  CHECK(difference(second, -0.0625 * sin(a)) < 1e-15);  // the chain passes it twice

  const Step halve = [](const Tensors& s, const Tensors&) { return Next{{scale_gradient(s[0], 0.5)}, {}}; };
  const auto [through] = grad(sum(scan(halve, {a}, {}, {.reverse = false, .length = 10, .passes = {}}).last[0]), {a});
  CHECK(difference(through, full_like(a, std::pow(0.5, 10))) == 0);
}

TEST_CASE("with scale_gradient, gradients enter the states of all times divided by T, and no value changes") {
  constexpr std::int64_t T = 7;
  const Tensor xs = random({T, 2, 3}, 1), R = random({5, 6}, 2), wh = random({T, 2, 5}, 3), wl = random({2, 5}, 4);
  for (const bool every : {true, false}) {  // read out all times, or the last state
    CAPTURE(every);
    Tensors values, gradients[2];
    for (const bool on : {false, true}) {
      const auto cell = make(3, 4, {{"pool", "2"}, {"clip", "0.8"}, {"scale_gradient", on ? "on" : "off"}});
      Tensors wrt{R};
      for (const Parameter& p : cell->parameters()) wrt.push_back(p.value);
      Tape tape;
      const Sequence all = scan(*cell, cell->initial(2), xs);
      const Tensor y = linear(every ? all.hs : cell->output(all.last), R);
      values.push_back(y);
      gradients[on] = grad({inner(every ? wh : wl, tanh(y))}, wrt);
    }
    CHECK(same_bits(values[0], values[1]));
    CHECK(same_bits(gradients[0][0], gradients[1][0]));  // the decoder's own gradient is not scaled
    for (std::size_t i = 1; i < gradients[0].size(); ++i)
      CHECK(difference(gradients[1][i], gradients[0][i] / static_cast<double>(T)) < 1e-15);
  }
}

TEST_CASE("clip has the range of the cell's numbers: f32 has no 1e39, which made gradients NaN") {
  const CellType& type = cell_type("lt_rnn");
  const auto one = [&](DType dtype, const char* clip) {
    Init init(3, dtype);
    const auto cell = type.make(2, 4, Settings(type.name, type.settings, {{"clip", clip}}), init);
    const Tensor V = named(*cell, "V");
    const Tape tape;
    const Tensor hs = scan(*cell, cell->initial(1), random({3, 1, 2}, 1, dtype)).hs;
    return std::isfinite(sum(grad(sum(hs), {V})[0]).item());
  };
  CHECK(one(DType::f32, "3.4e38"));
  CHECK(one(DType::f64, "1e39"));
  CHECK_THROWS_AS(one(DType::f32, "1e39"), SettingError);
}

TEST_CASE("soft orthogonality is a step of SGD on the paper's loss, averaged over the sphere") {
  constexpr std::int64_t n = 6;
  const auto cell = make(2, n, {{"soft_orthogonal", "0.3"}});
  Tensor V = named(*cell, "V");
  V.assign(random({n, n}, 1));
  const auto off = [&](const Tensor& A) { return matmul(A, A, {.transpose_a = true}) - eye(n, DType::f64); };
  const auto loss = [&](const Tensor& A) { return sum(square(off(A))) / static_cast<double>(n); };

  const Tensor before = V + 0.0;
  Tensor slope;
  {
    Tape tape;
    slope = grad(loss(before), {before})[0];
  }
  cell->updated();
  CHECK(difference(V, before - 0.3 * slope) < 1e-14);

  constexpr std::int64_t points = 200'000;  // |Vt V z - z|^2 at random z
  const Tensor any = normal({points, n}, 0, 1, 1, 1, DType::f64), z = any / norm(any, 2, {1}, true);
  const Tensor each = sum(square(matmul(z, off(before))), {1});
  CHECK(std::abs(mean(each).item() - loss(before).item()) < 5 * std_dev(each).item() / std::sqrt(points));

  double last = loss(before).item();
  for (int k = 0; k < 200; ++k) {
    cell->updated();
    CHECK(loss(V).item() <= std::max(last, 1e-28));  // until what is left is rounding
    last = loss(V).item();
  }
  CHECK(last < 1e-28);

  const auto without = make(2, n, {});
  Tensor U = named(*without, "V");
  U.assign(before);
  without->updated();
  CHECK(same_bits(U, before));
}

TEST_CASE("the explicit solution of copying recalls all symbols as often as it should") {
  for (const Row& row : table("henaff.tsv")) {
    const auto number = [&](const char* name) { return std::stoll(row.at(name)); };
    const std::int64_t K = number("K"), S = number("S"), d = number("d"), T = number("T"), n = 2 * d + 1;
    // As many as a second allows, none where these are too few to tell.
    const std::int64_t draws = std::min<std::int64_t>(400, 3'000'000'000 / ((T + 2 * S) * n * n));
    if (draws < 50) continue;
    Init init(2016, DType::f64);
    Stream random(7, static_cast<std::uint64_t>(T * d));
    int right = 0;
    for (std::int64_t k = 0; k < draws; ++k) {
      const LtSolution solution = copying_solution(K, S, T, d, init);
      REQUIRE(solution.cell->hidden == n);
      std::vector<std::int32_t> symbols(static_cast<std::size_t>(T + 2 * S), 0);
      for (std::int64_t t = 0; t < S; ++t)
        symbols[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(1 + random.below(K));
      symbols[static_cast<std::size_t>(T + S - 1)] = static_cast<std::int32_t>(K + 1);
      const Tensor x = Tensor::from<std::int32_t>(symbols, {T + 2 * S, 1});
      const Sequence all = scan(*solution.cell, solution.cell->initial(1), one_hot(x, K + 2, DType::f64));
      const Tensor said = argmax(linear(all.hs, solution.U));
      if (k == 0) {  // the last unit: lowered to -2 S by the data, raised to 2 S by the delimiter
        const Tensor s = slice(all.hs, 2, n - 1, n);
        const double before = at(at(s, T + S - 2), 0).item(), behind = at(at(s, T + S - 1), 0).item();
        CHECK(before == doctest::Approx(-2.0 * static_cast<double>(S)).epsilon(1e-12));
        CHECK(behind == doctest::Approx(2.0 * static_cast<double>(S)).epsilon(1e-12));
      }
      right += reel::all(equal(slice(said, 0, T + S, T + 2 * S), slice(x, 0, 0, S))).item() != 0;
      if (k == 0) CHECK(difference(slice(said, 0, 0, T + S - 1), Tensor::zeros({T + S - 1, 1}, DType::i32)) == 0);
    }
    const double rate = static_cast<double>(right) / static_cast<double>(draws), golden = std::stod(row.at("rate"));
    const double p = std::clamp(golden, 0.005, 0.995);  // a rate of 1 has been seen, but not for certain
    const double deviation = std::sqrt(p * (1 - p) * (1 / static_cast<double>(draws) + 1 / std::stod(row.at("draws"))));
    CAPTURE(K);
    CAPTURE(S);
    CAPTURE(d);
    CAPTURE(T);
    CHECK(std::abs(rate - golden) < 3 * deviation);
    fmt::print("copying by hand, K = {}, S = {}, T = {}, {} planes: {} of {} right, {:.1f}% expected\n", K, S, T, d,
               right, draws, 100 * golden);
  }
}

TEST_CASE("the explicit solution of adding is exact; that of an LSTM as far as tanh is linear") {
  constexpr std::int64_t T = 400, B = 100;
  Init init(1, DType::f64);
  const Tensor values = uniform({T, B}, 0, 1, 1, 1, DType::f64);
  std::vector<double> marks(static_cast<std::size_t>(T * B));
  Stream random(1, 2);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t first = random.below(T / 2), second = T / 2 + random.below(T / 2);
    for (const std::int64_t t : {first, second}) marks[static_cast<std::size_t>(t * B + b)] = 1;
  }
  const Tensor markers = Tensor::from(std::span<const double>(marks), {T, B});
  const auto error = [&](const LtSolution& solution) {
    const Sequence all =
        scan(*solution.cell, solution.cell->initial(B), concat({unsqueeze(values, 2), unsqueeze(markers, 2)}, -1));
    const Tensor sums = reshape(linear(all.last[0], solution.U), {B});
    return max(abs(sums - sum(values * markers, {0}))).item();
  };
  CHECK(error(adding_solution(init)) < 1e-12);
  CHECK(error(lstm_adding_solution(init)) < 3.4e-6);
}

TEST_CASE("a solution says which number is too small") {
  Init init(1);
  CHECK(error_of([&] { copying_solution(8, 10, 0, 4, init); }) == "[copying_solution] T of 1 or more is needed, got 0");
}
