// What the orthogonal and unitary cells promise: W stays orthogonal under a thousand updates of any optimiser, ENRNN's
// W_S keeps its eigenvalues in the unit disk, and gradients keep their size over a thousand time steps.
#include <set>

#include "cells/cell.h"
#include "tasks/training/optimizer.h"
#include "tests/support/cells.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t input = 3, hidden = 16, batch = 4;

/// A cell whose step is h' = W h where x = 0 and some parameters have given values in all their elements: modReLU with
/// threshold 0 is the identity, and gates can be held open.
struct Linear {
  std::string cell;
  std::map<std::string, std::string> settings;
  std::map<std::string, double> held;
  double spread = 0;  // singular values of W lie within so much of 1
};

const std::map<std::string, double> no_threshold{{"b", 0}},
    shifted{{"b", -0.01}},  // EUNN's modReLU for real numbers looks at |z| + 0.01
    open_gates{{"W_z", 0}, {"W_r", 0}, {"b_z", -200}, {"b_r", 200}, {"b_c", -0.001}};

/// Orthogonal or unitary whatever the updates do.
const std::vector<Linear> lasting{
    {"urnn", {{"modrelu", "plain"}}, no_threshold},
    {"full_urnn", {{"modrelu", "plain"}}, no_threshold},
    {"eurnn", {{"style", "fft"}, {"field", "real"}}, shifted},
    {"eurnn", {{"style", "fft"}, {"field", "complex"}}, no_threshold},
    {"eurnn", {{"style", "tunable"}, {"field", "real"}, {"capacity", "16"}}, shifted},
    {"eurnn", {{"style", "tunable"}, {"field", "complex"}, {"capacity", "16"}}, no_threshold},
    {"goru", {{"style", "fft"}}, open_gates},
    {"goru", {{"style", "tunable"}, {"capacity", "4"}}, open_gates},
    {"goru", {{"style", "householder"}, {"reflections", "5"}}, open_gates},
    {"ornn", {{"activation", "modrelu"}, {"reflections", "5"}}, no_threshold},
    {"ornn", {{"activation", "modrelu"}, {"reflections", "16"}}, no_threshold},
    {"scornn", {{"negatives", "0"}}, no_threshold},
    {"scornn", {{"negatives", "5"}}, no_threshold},
    {"exprnn", {{"init", "henaff"}}, no_threshold},
    {"exprnn", {{"init", "cayley"}}, no_threshold},
    {"dtriv", {}, no_threshold},
    {"dtriv", {{"rebase", "1"}, {"project", "300"}}, no_threshold},
    {"dtriv", {{"rebase", "7"}, {"project", "3"}}, no_threshold},
    {"nnrnn", {}, {{"b", 0}, {"alpha", 1}, {"T", 0}}},  // P R P^T with R of plane rotations
    {"spectral_rnn", {{"activation", "identity"}, {"rho", "0"}}, no_threshold},
    {"spectral_rnn", {{"activation", "identity"}, {"rho", "0.01"}}, no_threshold, 0.01},
    {"spectral_rnn", {{"activation", "identity"}, {"rho", "0.3"}, {"reflections", "16"}}, no_threshold, 0.3},
    {"enrnn", {{"negatives", "3"}}, {{"b_L", 0}}},  // W_L, as h_S stays 0
};

/// Orthogonal at the start alone.
const std::vector<Linear> at_start{
    {"lt_rnn", {{"activation", "identity"}}, {}},
    {"lt_irnn", {{"activation", "identity"}}, {}},
    {"rnn", {{"activation", "identity"}, {"init", "orthogonal"}}, {}},
    {"irnn", {}, {}},  // of states above 0, where ReLU is the identity
    {"srnn", {{"gate", "off"}}, {{"fo.W", 0}, {"fo.b", 0}}},
};

/// Those without an orthogonal matrix: their recurrence is damped, gated, or none.
const std::set<std::string> others{"lstm", "gru", "janet", "sru", "nru", "rnn-id", "rnn-orth", "r_transformer"};

std::string text(const Linear& c) {
  std::string out = c.cell;
  for (const auto& [name, value] : c.settings) out += fmt::format(" {}={}", name, value);
  return out;
}

std::unique_ptr<Cell> make(const std::string& name, const std::map<std::string, std::string>& settings,
                           std::int64_t width = hidden) {
  Init init(5);
  const CellType& type = cell_type(name);
  return type.make(input, width, Settings(name, type.settings, settings), init);
}

Tensor& value(const Cell& cell, const std::string& name) {
  for (const Parameter& p : cell.parameters()) {
    if (p.name == name) return const_cast<Tensor&>(p.value);
  }
  throw Error("test", "no parameter " + name);
}

void hold(const Cell& cell, const std::map<std::string, double>& held) {
  for (const auto& [name, x] : held) value(cell, name).assign(full_like(value(cell, name), x));
}

/// The first state's next values where it is given, the others are 0 and so is x.
Tensor pushed(const Cell& cell, const Tensor& first) {
  Tensors state = cell.initial(first.dim(0));
  for (Tensor& s : state) s = zeros_like(s);
  state[0] = first;
  return cell.step(state, Tensor::zeros({first.dim(0), input}))[0];
}

DType dtype_of_state(const Cell& cell) { return cell.states()[0].complex ? DType::c64 : DType::f32; }

/// W: the rows W e_j are its columns.
Tensor matrix(const Cell& cell) {
  const Tensor W = transpose(pushed(cell, eye(cell.states()[0].width, dtype_of_state(cell))));
  return cast(W, is_complex(W.dtype()) ? DType::c128 : DType::f64);
}

/// The largest element of |W^H W - I|.
double not_unitary(const Tensor& W) {
  return difference(matmul(W, W, {.transpose_a = true, .conj_a = true}), eye(W.dim(0), W.dtype()));
}

Tensors normal_gradients(const std::vector<Parameter>& parameters, std::uint64_t step) {
  Tensors out;
  std::uint64_t stream = 0;
  for (const Parameter& p : parameters) {
    const Shape& shape = p.value.shape();
    const Tensor re = normal(shape, 0, 1, step, ++stream);
    out.push_back(is_complex(p.value.dtype()) ? complex(re, normal(shape, 0, 1, step, ++stream)) : re);
  }
  return out;
}

std::vector<Parameter> trained(const Cell& cell) {
  std::vector<Parameter> out;
  for (const Parameter& p : cell.parameters()) {
    if (p.trained) out.push_back(p);
  }
  return out;
}

OptimizerOptions options(const std::string& kind) {
  OptimizerOptions out;
  out.kind = kind;
  out.lr = kind == "adagrad" ? 0.1 : 0.01;  // Adagrad's steps become short
  return out;
}

/// A thousand updates with random gradients.
void update(Cell& cell, const std::string& kind) {
  const auto parameters = trained(cell);
  Optimizer optimizer(parameters, options(kind));
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    const Tensors gradients = normal_gradients(parameters, step);
    optimizer.step(gradients, optimizer.norm(gradients));
    cell.updated();
  }
}

/// |d <w, h_T> / d h_0| / |w| for T = 1,000, h_0 > 0 and w random: 1 for an orthogonal W.
double growth(const Cell& cell) {
  Tape tape;
  Tensors state = cell.initial(batch);
  for (Tensor& s : state) s = zeros_like(s);
  const Shape shape = state[0].shape();
  state[0] = random(shape, 1, dtype_of_state(cell), 0.1, 1);
  const Tensor w = random(shape, 2, dtype_of_state(cell));
  const Sequence all = scan(cell, state, Tensor::zeros({1000, batch, input}));
  const Tensor g = grad({inner(w, all.last[0])}, Tensors{state[0]})[0];
  return std::sqrt(inner(g, g).item() / inner(w, w).item());
}

/// How far growth() is off at most. Singular values of a W in single precision are off by a few roundings (2.3 are
/// seen), and each of its steps multiplies by them.
constexpr double of_growth = 1000 * 8 * 0x1p-23;

}  // namespace

TEST_CASE("W is orthogonal or unitary to 1e-5 after 1,000 updates of each optimiser") {
  double worst = 0;
  for (const Linear& c : lasting) {
    for (const std::string& kind : OptimizerOptions::kinds()) {
      CAPTURE(text(c));
      CAPTURE(kind);
      const auto cell = make(c.cell, c.settings);
      hold(*cell, c.held);
      const Tensor before = matrix(*cell);
      update(*cell, kind);
      hold(*cell, c.held);
      const Tensor W = matrix(*cell);
      CHECK(difference(W, before) > 0.1);  // it went somewhere
      if (c.spread > 0) {
        for (const double s : svd(W).S.values<double>()) CHECK(std::abs(s - 1) < c.spread + 1e-5);
      } else {
        CHECK(not_unitary(W) < 1e-5);
        worst = std::max(worst, not_unitary(W));
      }
    }
  }
  fmt::print("largest element of W^H W - I after 1,000 updates: {:.1e}\n", worst);
}

TEST_CASE("gradients neither vanish nor explode over 1,000 steps, at the start and after updates") {
  for (const auto* cells : {&lasting, &at_start}) {
    for (const Linear& c : *cells) {
      CAPTURE(text(c));
      const auto cell = make(c.cell, c.settings);
      hold(*cell, c.held);
      CHECK(growth(*cell) == doctest::Approx(1).epsilon(of_growth));
      if (cells == &at_start || c.spread > 0) continue;
      update(*cell, "rmsprop");
      hold(*cell, c.held);
      CHECK(growth(*cell) == doctest::Approx(1).epsilon(of_growth));
    }
  }
  // What the test sees where nothing keeps W orthogonal.
  CHECK(growth(*make("rnn", {})) < 1e-6);
  for (const double scale : {0.98, 1.02}) {
    const auto cell = make("rnn", {{"activation", "identity"}, {"init", "orthogonal"}});
    Tensor& W = value(*cell, "W");
    W.assign(scale * W);
    CHECK(growth(*cell) == doctest::Approx(std::pow(scale, 1000)).epsilon(of_growth));
  }
}

TEST_CASE("every cell is in one of these tables") {
  for (const CellType& type : cell_registry()) {
    bool known = others.contains(type.name);
    for (const auto* cells : {&lasting, &at_start})
      for (const Linear& c : *cells) known = known || c.cell == type.name;
    if (!known && needs_row(type, "the tables of structure")) FAIL_CHECK(type.name);
  }
}

TEST_CASE("spectral_rnn: after an update the rows of both sides have length 1") {
  const auto cell = make("spectral_rnn", {});
  for (const char* name : {"U_H", "V_H"}) {
    Tensor& rows = value(*cell, name);
    rows.assign(rows * 3.0);
    cell->updated();
    CHECK(difference(norm(rows, 2, {1}), Tensor::full({rows.dim(0)}, 1)) < 1e-6);
  }
}

TEST_CASE("ornn: after an update the reflections have length 1") {
  const auto cell = make("ornn", {});
  Tensor& U = value(*cell, "U");
  U.assign(U * 3.0);
  cell->updated();
  CHECK(difference(norm(U, 2, {0}), Tensor::full({U.dim(1)}, 1)) < 1e-6);
}

TEST_CASE("scornn: of an odd number of units the smaller half has sign -1") {
  const Tensor h = random({2, 5}, 1, DType::f32), x = random({2, input}, 2, DType::f32);
  const Tensors state{h};
  const Tensor half = make("scornn", {}, 5)->step(state, x)[0];
  CHECK(difference(half, make("scornn", {{"negatives", "2"}}, 5)->step(state, x)[0]) == 0);
  CHECK(difference(half, make("scornn", {{"negatives", "3"}}, 5)->step(state, x)[0]) > 0);
}

TEST_CASE("dtriv: the base moves every `rebase` updates, and is projected at every `project`-th move") {
  const auto cell = make("dtriv", {{"rebase", "2"}, {"project", "2"}});  // the first move is that of the constructor
  Tensor& base = value(*cell, "B_0");
  Tensor& A = value(*cell, "A");
  for (int update = 1; update <= 6; ++update) {
    CAPTURE(update);
    base.assign(base * (8 / norm(base).item()));  // 16 rows of length 2: off the group, so that a projection shows
    A.assign(random(A.shape(), 1, DType::f32, -0.1, 0.1));
    cell->updated();
    CHECK((norm(A).item() == 0) == (update % 2 == 0));                                         // moved to the base
    CHECK(std::abs(norm(base).item() / 4 - (update == 2 || update == 6 ? 1.0 : 2.0)) < 1e-5);  // length of the rows
  }
}

namespace {

/// The largest modulus of an eigenvalue, by all of them, in double.
double radius(const Tensor& T) {
  double largest = 0;
  for (const auto& w : elements(eigvals(cast(T, DType::f64)))) largest = std::max(largest, std::abs(w));
  return largest;
}

/// W_S of an ENRNN with b_S = 0, as matrix().
Tensor short_matrix(const Cell& cell) {
  const std::int64_t s = cell.states()[1].width;
  const Tensors state{Tensor::zeros({s, cell.states()[0].width}), eye(s)};
  return transpose(cell.step(state, Tensor::zeros({s, input}))[1]);
}

}  // namespace

TEST_CASE("ENRNN: W_S is T until rho(T) > 1, and has radius 1 from then on") {
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    const auto cell = make("enrnn", {{"normalise", "late"}}, 32);
    const auto parameters = trained(*cell);
    Optimizer optimizer(parameters, options(kind));
    const Tensor T = value(*cell, "T");
    bool grown = false, back = false;
    double largest = 0, farthest = 0;
    for (std::uint64_t step = 1; step <= 1000; ++step) {
      Tensors gradients = normal_gradients(parameters, step);
      for (std::size_t i = 0; i < parameters.size(); ++i) {  // T grows until its radius is 2, then it shrinks
        if (parameters[i].name == "T") gradients[i] = 0.3 * gradients[i] + (largest < 2 ? -1.0 : 1.0) * T;
      }
      optimizer.step(gradients, optimizer.norm(gradients));
      cell->updated();
      hold(*cell, {{"b_S", 0}});
      const double rho = radius(T);
      grown = grown || rho > 1;
      back = back || (grown && rho < 0.9);
      largest = std::max(largest, rho);
      const bool switched = value(*cell, "grown").item() != 0;
      REQUIRE(switched == grown);
      const Tensor W_S = short_matrix(*cell);
      if (grown)
        farthest = std::max(farthest, std::abs(radius(W_S) - 1));
      else
        REQUIRE(difference(W_S, T) == 0);
    }
    CHECK(largest > 2);
    CHECK(back);
    CHECK(farthest < 1e-6);
    fmt::print("{}: rho(W_S) within {:.1e} of 1\n", kind, farthest);
  }
}

TEST_CASE("ENRNN, naive: the parameter T itself is divided after an update, and W_S is T") {
  const auto cell = make("enrnn", {{"normalise", "naive"}}, 32);
  Tensor& T = value(*cell, "T");
  hold(*cell, {{"b_S", 0}});
  cell->updated();
  CHECK(difference(short_matrix(*cell), T) == 0);  // at the start its radius is below 1
  const double before = radius(T);
  CHECK(before < 1);
  T.assign(T * (3 / before));
  const Tensor direction = T / 3.0;
  cell->updated();
  CHECK(radius(T) == doctest::Approx(1).epsilon(1e-5));
  CHECK(difference(T, direction) < 1e-5);
  CHECK(difference(short_matrix(*cell), T) == 0);
}

TEST_CASE("ENRNN, Theorem 3.1: with ReLU the Jacobian of h_S over tau steps is at most |W_S|^tau, if |W_S| < 1") {
  constexpr std::int64_t n = 8;
  const auto cell = make("enrnn", {{"short", "8"}, {"activation", "relu"}, {"normalise", "off"}});
  const auto two_norm = [](const Tensor& M) { return std::sqrt(radius(matmul(M, M, {.transpose_a = true}))); };
  const Tensor any = normal({n, n}, 0, 1, 7, 1);
  value(*cell, "T").assign(any * (0.9 / two_norm(any)));
  hold(*cell, {{"b_S", 0.1}});  // most units stay above 0
  const Tensor h = normal({1, n}, 2, 0.5, 7, 2), x = normal({1, input}, 0, 1, 7, 3);
  const Tape tape;
  Tensors state{Tensor::zeros({1, hidden - n}), h};
  double bound = 1, before = INFINITY;
  for (int tau = 1; tau <= 12; ++tau) {
    state = cell->step(state, x);
    Tensors rows;
    for (std::int64_t i = 0; i < n; ++i) rows.push_back(grad({sum(slice(state[1], -1, i, i + 1))}, {h})[0]);
    bound *= 0.9;
    const double size = two_norm(concat(rows, 0));
    CHECK(size <= bound * (1 + 1e-5));
    CHECK(size > 0);
    CHECK(size <= before);
    before = size;
  }
}

TEST_CASE("ornn with as many reflections as units: the last one is the sign of U_nn, and that of W's determinant") {
  const auto cell = make("ornn", {{"reflections", "6"}, {"activation", "modrelu"}}, 6);
  const auto sign = [&] { return std::lround(det(matrix(*cell)).item()); };
  const long before = sign();
  CHECK(std::abs(before) == 1);
  Tensor& U = value(*cell, "U");
  U.assign(U - U * diag_embed(Tensor::from<float>({0, 0, 0, 0, 0, 2}, {6})));
  CHECK(sign() == -before);
}

TEST_CASE("nnrnn: the penalty is on alpha - 1, and on T above the blocks") {
  const auto cell = make("nnrnn", {{"delta", "0.5"}, {"T_decay", "0.25"}}, 6);
  CHECK(cell->penalty().item() == 0);  // alpha = 1 and T = 0 at the start
  hold(*cell, {{"alpha", 3}, {"T", 2}});
  CHECK(cell->penalty().item() == doctest::Approx(0.5 * 3 * 4 + 0.25 / 2 * (15 - 3) * 4));
  // The gradient is that of a weight decay, 0.25 T where T is used: above the 2x2 blocks.
  Tape tape;
  const auto g = grad({cell->penalty()}, {value(*cell, "T")})[0].values<float>();
  for (std::size_t i = 0; i < 36; ++i) CHECK(g[i] == (i % 6 / 2 > i / 6 / 2 ? 0.25F * 2 : 0));
}
