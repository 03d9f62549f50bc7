// How the parameters of every cell start: a table of laws, held by moments within 5 sigma of their sampling error, by
// bounds and by structure; angles of eigenvalues; seeds.
#include <set>
#include <sstream>

#include "cells/cell.h"
#include "tests/cells/distributions.h"
#include "tests/support/cells.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t i = 50, n = 128;  // inputs and units of the table

using Given = std::map<std::string, std::string>;

std::unique_ptr<Cell> make(const std::string& name, const Given& given, Init& init, std::int64_t input = i,
                           std::int64_t hidden = n) {
  const CellType& type = cell_type(name);
  return type.make(input, hidden, Settings(name, type.settings, given), init);
}
std::unique_ptr<Cell> make(const std::string& name, const Given& given, std::uint64_t seed = 7,
                           DType dtype = DType::f64) {
  Init init(seed, dtype);
  return make(name, given, init);
}

Tensor value(const Cell& cell, const std::string& name) {
  for (const Parameter& p : cell.parameters()) {
    if (p.name == name) return p.value;
  }
  throw Error("test", "no parameter " + name);
}

struct Row {
  std::string cell;
  Given given;
  std::vector<std::pair<std::string, Law>> laws;  // of parameters, names with spaces between
};

/// What the papers and their code say of each cell; PyTorch's defaults where they leave it to those.
std::vector<Row> table() {
  const double k = 1 / root(n);  // PyTorch's recurrent cells: everything uniform in +-1/sqrt(n)
  const Law zero = constant(0), one = constant(1), small = uniform(0.01), phases = uniform(pi), angles = uniform(3.14),
            h_0 = uniform(root(3.0 / (2 * n))), kaiming = normal(root(2.0 / i)), glorot = glorot_uniform(n, i),
            glorot_n = glorot_normal(n, i), linear_i = linear_of(i), linear_n = linear_of(n);
  const Law order = permutation(), input_2 = both(glorot_uniform(2 * n, i)),
            vectors = both(uniform(root(6.0 / (2 + 2 * n)))), small_2 = both(small), h_0_2 = both(h_0);
  const Law cayley_blocks = skew(0, pi / 2, from_minus_tan), chrono = log_of(uniform(1, 199)),
            whole_chrono = log_of(whole(1, 200));
  const std::string gates_W = "W_i W_f W_g W_o", gates_R = "R_i R_f R_g R_o", gates_b = "b_i b_f b_g b_o",
                    gates_b2 = "b2_i b2_f b2_g b2_o", omegas = "omega_1 omega_2 omega_3";
  const double nru_h = i + n + 64, nru_q = n + 64, sru_q = n / 4;
  return {
      {"rnn", {}, {{"U W b b2", uniform(k)}}},
      {"rnn",
       {{"init", "orthogonal"}, {"norm", "layer"}, {"biases", "1"}},
       {{"U", glorot_normal(n, i, root(2))}, {"W", orthogonal()}, {"b beta", zero}, {"g", one}}},
      {"irnn", {}, {{"U", normal(1e-3)}, {"W", identity()}, {"b", zero}}},
      {"irnn", {{"biases", "2"}}, {{"U", normal(1e-3)}, {"W", identity()}, {"b b2", zero}}},
      {"irnn", {{"norm", "layer"}}, {{"U", normal(1e-3)}, {"W", identity()}, {"b beta", zero}, {"g", one}}},
      {"rnn-id", {}, {{"U", glorot_normal(n, i, root(2))}, {"W", identity()}, {"b beta", zero}, {"g", one}}},
      {"rnn-orth", {}, {{"U", glorot_normal(n, i, root(2))}, {"W", orthogonal()}, {"b beta", zero}, {"g", one}}},
      {"lt_rnn", {}, {{"W b", linear_i}, {"V", orthogonal()}}},
      {"lt_irnn", {}, {{"W b", linear_i}, {"V", identity()}}},
      {"lt_irnn", {{"activation", "identity"}}, {{"W", linear_i}, {"V", identity()}}},

      {"lstm", {}, {{gates_W + " " + gates_R + " " + gates_b + " " + gates_b2, uniform(k)}}},
      {"lstm",
       {{"init", "glorot"}, {"peephole", "full"}, {"forget_bias", "1"}, {"biases", "1"}, {"initial", "trained"}},
       {{gates_W, glorot},
        {gates_R + " V_i V_f V_g V_o", glorot_uniform(n, n)},
        {"b_i b_g b_o h_0 c_0", zero},
        {"b_f", one}}},
      {"lstm",
       {{"init", "tensorflow"}, {"forget_bias", "1"}},
       {{gates_W + " " + gates_R, uniform(root(6.0 / (i + 5 * n)))}, {"b_i b_g b_o " + gates_b2, zero}, {"b_f", one}}},
      {"lstm",
       {{"init", "orthogonal"}, {"peephole", "diagonal"}, {"forget_bias", "-2.5"}},
       {{gates_W, glorot_n},
        {gates_R, orthogonal()},
        {"p_i p_f p_o", uniform(0, 1)},
        {"b_i b_g b_o " + gates_b2, zero},
        {"b_f", constant(-2.5)}}},
      {"lstm",
       {{"chrono", "200"}, {"norm", "layer"}},
       {{gates_W + " " + gates_R, uniform(k)},
        {"b_f", chrono},
        {"b_i", log_of(uniform(1, 199), -1)},
        {"b_g b_o beta_i beta_f beta_g beta_o beta_c " + gates_b2, zero},
        {"g_i g_f g_g g_o g_c", one}}},
      {"lstm",
       {{"chrono", "200"}, {"chrono_draw", "whole"}, {"forget_bias", "1"}, {"biases", "1"}},
       {{gates_W + " " + gates_R, uniform(k)},
        {"b_f", whole_chrono},
        {"b_i", log_of(whole(1, 200), -1)},
        {"b_g b_o", zero}}},
      {"lstm",  // so short that the longest time and the one before it cannot be confused
       {{"chrono", "4"}},
       {{gates_W + " " + gates_R, uniform(k)},
        {"b_f", log_of(uniform(1, 3))},
        {"b_i", log_of(uniform(1, 3), -1)},
        {"b_g b_o " + gates_b2, zero}}},
      {"gru", {}, {{"U_r U_z U_c W_r W_z W_c b_r b_z b_c b2_r b2_z b2_c", uniform(k)}}},
      {"gru",
       {{"init", "orthogonal"}, {"norm", "layer"}},
       {{"U_r U_z U_c", glorot_n},
        {"W_r W_z W_c", orthogonal()},
        {"b_r b_z b_c b2_r b2_z b2_c beta_r beta_z beta_c", zero},
        {"g_r g_z g_c", one}}},
      {"janet",
       {{"norm", "layer"}},
       {{"U_f U_c", glorot_n},
        {"W_f W_c", orthogonal()},
        {"b_f", log_of(uniform(1, 784))},
        {"b_c beta_c", zero},
        {"g_c", one}}},
      {"janet",
       {{"chrono", "4"}},
       {{"U_f U_c", glorot_n}, {"W_f W_c", orthogonal()}, {"b_f", log_of(uniform(1, 4))}, {"b_c", zero}}},
      {"janet",
       {{"chrono", "200"}, {"chrono_draw", "whole"}},
       {{"U_f U_c", glorot_n}, {"W_f W_c", orthogonal()}, {"b_f", whole_chrono}, {"b_c", zero}}},
      {"sru",
       {},
       {{"W_r", glorot_uniform(sru_q, 300, root(2))},
        {"W_phi", glorot_uniform(60, i + sru_q, root(2))},
        {"W_o", glorot_uniform(n, 300, root(2))},
        {"b_r b_phi b_o", zero}}},
      {"nru",
       {{"norm", "layer"}},
       {{"W_h b_h", linear_of(nru_h)},
        {"W_alpha b_alpha W_beta b_beta W_valpha b_valpha W_vbeta b_vbeta", linear_of(nru_q)},
        {"g", one},
        {"beta", zero}}},
      {"srnn",
       {{"layers", "2"}, {"width", "32"}},
       {{"f1.W f1.b g.W g.b", linear_i}, {"f2.W f2.b fo.W fo.b", linear_of(32)}}},

      {"urnn",
       {},
       {{omegas, phases}, {"v_1 v_2", vectors}, {"V", input_2}, {"b", small}, {"z_0", h_0_2}, {"perm", order}}},
      {"urnn",
       {{"init", "srnn_urnn"}, {"initial", "zero"}},
       {{omegas, phases}, {"v_1 v_2", both(uniform(1))}, {"V", input_2}, {"b", zero}, {"perm", order}}},
      {"full_urnn", {}, {{"W", unitary()}, {"V", input_2}, {"b", small}, {"z_0", h_0_2}}},
      {"eurnn", {}, {{"theta", angles}, {"U", small}, {"b", zero}}},
      {"eurnn", {{"field", "complex"}}, {{"theta phi omega", angles}, {"U", small_2}, {"b", zero}}},
      {"eurnn", {{"style", "tunable"}, {"capacity", "8"}}, {{"theta_A theta_B", angles}, {"U", small}, {"b", zero}}},
      {"eurnn",
       {{"style", "tunable"}, {"field", "complex"}},
       {{"theta_A theta_B phi_A phi_B omega", angles}, {"U", small_2}, {"b", zero}}},
      {"goru",
       {},
       {{"U_z U_r U_c W_z W_r", small},
        {"b_z", uniform(root(3.0 / n))},
        {"b_r", constant(2)},
        {"b_c", constant(0.01)},
        {"theta", angles}}},
      {"goru",
       {{"reset", "off"}, {"style", "tunable"}},
       {{"U_z U_c W_z", small},
        {"b_z", uniform(root(3.0 / n))},
        {"b_r", constant(2)},
        {"b_c", constant(0.01)},
        {"theta_A theta_B", angles}}},
      {"goru",
       {{"update", "off"}, {"style", "householder"}},
       {{"U_r U_c W_r", small},
        {"b_z", uniform(root(3.0 / n))},
        {"b_r", constant(2)},
        {"b_c", constant(0.01)},
        {"H", normal(1)}}},
      {"ornn", {{"reflections", "64"}}, {{"U", unit_columns_of_normal()}, {"V", glorot}, {"b", zero}, {"h_0", h_0}}},
      {"scornn", {}, {{"A", cayley_blocks}, {"U", small}, {"b", zero}}},
      {"exprnn", {}, {{"A", cayley_blocks}, {"U", kaiming}, {"b", small}}},
      {"exprnn", {{"init", "henaff"}}, {{"A", skew(-pi, pi, itself)}, {"U", kaiming}, {"b", small}}},
      {"dtriv", {}, {{"A updates", zero}, {"B_0", rotations(0, pi / 2, from_minus_tan)}, {"U", kaiming}, {"b", small}}},
      {"dtriv",
       {{"init", "henaff"}},
       {{"A updates", zero}, {"B_0", rotations(-pi, pi, itself)}, {"U", kaiming}, {"b", small}}},
      {"nnrnn",
       {},
       {{"log_P", cayley_blocks},
        {"theta", uniform(0, 6.28)},
        {"alpha", one},
        {"T", zero},
        {"U", kaiming},
        {"b", small}}},
      {"spectral_rnn", {{"reflections", "64"}}, {{"U_H V_H", glorot_uniform(64, n)}, {"p b", zero}, {"M", glorot}}},
      {"enrnn",
       {{"short", "48"}},
       {{"A", skew(0, pi / 2, from_tan)},
        {"T", scaled_rotations()},
        {"W_C", glorot_uniform(80, 48)},
        {"U_L U_S", small},
        {"b_L b_S grown", zero}}},
      {"r_transformer",
       {},
       {{"W_e b_e", linear_i},
        {"rnn.U rnn.W rnn.b rnn.b2", uniform(k)},
        {"norm1.a norm2.a norm3.a", one},
        {"norm1.b norm2.b norm3.b", zero},
        {"W_q b_q W_k b_k W_v b_v W_o b_o W_1 b_1", linear_n},
        {"W_2 b_2", linear_of(4 * n)}}},
  };
}

/// The laws of a row by the parameters' names.
std::map<std::string, Law> by_name(const Row& row) {
  std::map<std::string, Law> out;
  for (const auto& [names, law] : row.laws) {
    std::istringstream words(names);
    for (std::string name; words >> name;) {
      REQUIRE(!out.contains(name));
      out[name] = law;
    }
  }
  return out;
}

std::string text(const Row& row) {
  std::string out = row.cell;
  for (const auto& [name, v] : row.given) out += fmt::format(" {}={}", name, v);
  return out;
}

}  // namespace

TEST_CASE("every parameter starts by its law, in both precisions") {
  for (const Row& row : table()) {
    CAPTURE(text(row));
    for (const DType dtype : {DType::f32, DType::f64}) {
      auto laws = by_name(row);
      const auto cell = make(row.cell, row.given, 7, dtype);
      for (const Parameter& p : cell->parameters()) {
        CAPTURE(p.name);
        REQUIRE(laws.contains(p.name));
        laws.at(p.name).check(p.value);
        laws.erase(p.name);
      }
      for (const auto& [name, law] : laws) FAIL_CHECK("no such parameter: " << name);
    }
  }
}

TEST_CASE("every parameter of every cell is in the table, whatever the choices") {
  std::map<std::string, std::set<std::string>> known;
  for (const Row& row : table()) {
    for (const auto& [name, law] : by_name(row)) known[row.cell].insert(name);
  }
  for (const CellType& type : cell_registry()) {
    if (!known.contains(type.name) && !needs_row(type, "the table of initial values")) continue;
    std::vector<Given> variants{{}};
    for (const Setting& s : type.settings) {
      for (const std::string& c : s.choices) variants.push_back({{s.name, c}});
    }
    for (const Given& given : variants) {
      std::unique_ptr<Cell> cell;
      if (!error_of([&] { cell = make(type.name, given); }).empty()) continue;  // a setting that needs another one, too
      for (const Parameter& p : cell->parameters()) {
        const bool inside = type.name == "r_transformer" && p.name.starts_with("rnn.");
        const std::string owner = inside && given.contains("cell") ? given.at("cell") : inside ? "rnn" : type.name;
        CHECK_MESSAGE(known[owner].contains(inside ? p.name.substr(4) : p.name), type.name << " " << p.name);
      }
    }
  }
}

TEST_CASE("seeds: the same bits for one, other numbers for another; parameters and layers have numbers of their own") {
  for (const Row& row : table()) {
    CAPTURE(text(row));
    const auto laws = by_name(row);
    const auto one = make(row.cell, row.given, 7), same = make(row.cell, row.given, 7),
               other = make(row.cell, row.given, 8);
    Init init(7, DType::f64);
    const auto first = make(row.cell, row.given, init), second = make(row.cell, row.given, init);
    std::vector<std::pair<std::string, std::vector<double>>> series;
    for (std::size_t j = 0; j < one->parameters().size(); ++j) {
      const Parameter& p = one->parameters()[j];
      CAPTURE(p.name);
      CHECK(elements(p.value) == elements(same->parameters()[j].value));
      CHECK(elements(p.value) == elements(first->parameters()[j].value));
      if (!laws.at(p.name).random) continue;
      CHECK(elements(p.value) != elements(other->parameters()[j].value));
      CHECK(elements(p.value) != elements(second->parameters()[j].value));
      if (!laws.at(p.name).dense) continue;
      for (const Tensor& x : {p.value, second->parameters()[j].value}) {
        series.emplace_back(p.name, elements_of(real(x)));
        if (is_complex(x.dtype())) series.emplace_back(p.name + " imaginary", elements_of(imag(x)));
      }
    }
    // The same numbers twice, at another scale too, would be correlated.
    for (std::size_t a = 0; a < series.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const auto& [name_a, x] = series[a];
        const auto& [name_b, y] = series[b];
        const std::size_t count = std::min({x.size(), y.size(), std::size_t{1024}});
        double xy = 0, xx = 0, yy = 0;
        for (std::size_t e = 0; e < count; ++e) xy += x[e] * y[e], xx += x[e] * x[e], yy += y[e] * y[e];
        CAPTURE(name_a);
        CAPTURE(name_b);
        // Numbers that are all above 0 are correlated by their means.
        const bool centred = *std::min_element(x.begin(), x.end()) < 0 && *std::min_element(y.begin(), y.end()) < 0;
        if (count >= 64 && centred)
          CHECK(std::abs(xy) / std::sqrt(xx * yy) < 6 / std::sqrt(static_cast<double>(count)));
        CHECK(!std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count), y.begin()));
      }
    }
  }
}

namespace {

/// W of the first state's step, with all biases 0, the other states 0 and x 0.
Tensor matrix(const Cell& cell) {
  for (const Parameter& p : cell.parameters()) {
    if (p.name.starts_with("b")) Tensor(p.value).assign(zeros_like(p.value));
  }
  const std::int64_t width = cell.states()[0].width;
  Tensors state = cell.initial(width);
  for (Tensor& s : state) s = zeros_like(s);
  state[0] = eye(width, state[0].dtype());
  return transpose(cell.step(state, Tensor::zeros({width, cell.input}, DType::f64))[0]);
}

/// The eigenvalues above the real axis.
std::vector<std::complex<double>> upper_eigenvalues(const Tensor& W) {
  std::vector<std::complex<double>> out;
  for (const auto& w : elements(eigvals(W))) {
    if (w.imag() > 0) out.push_back(w);
  }
  CHECK(static_cast<std::int64_t>(out.size()) == W.dim(0) / 2);
  return out;
}

}  // namespace

TEST_CASE("eigenvalues of orthogonal starts: e^(+-i u), u uniform") {
  struct Start {
    std::string cell;
    Given given;
    double high;          // u is uniform in 0..high
    double (*u)(double);  // of the angle
  };
  for (const Start& s :
       {Start{"scornn", {{"negatives", "0"}}, pi / 2, itself}, Start{"enrnn", {{"negatives", "0"}}, pi / 2, itself},
        Start{"exprnn", {{"init", "henaff"}}, pi, itself}, Start{"exprnn", {{"init", "cayley"}}, pi / 2, from_tan},
        Start{"dtriv", {{"init", "henaff"}}, pi, itself}, Start{"dtriv", {{"init", "cayley"}}, pi / 2, from_tan}}) {
    CAPTURE(s.cell);
    std::vector<double> us;
    for (const auto& w : upper_eigenvalues(matrix(*make(s.cell, s.given)))) {
      CHECK(std::abs(w) == doctest::Approx(1).epsilon(1e-12));
      us.push_back(s.u(std::arg(w)));
    }
    std::shuffle(us.begin(), us.end(), std::mt19937(1));  // LAPACK's order is not random
    check_uniform(us, 0, s.high);
  }
}

TEST_CASE("the signs of D are the last ones: W = cayley(A) D") {
  for (const std::string cell : {"scornn", "enrnn"}) {
    const Tensor plain = matrix(*make(cell, {{"negatives", "0"}})), W = matrix(*make(cell, {{"negatives", "5"}}));
    const std::int64_t q = W.dim(0);
    CHECK(difference(slice(W, 1, 0, q - 5), slice(plain, 1, 0, q - 5)) == 0);
    CHECK(difference(slice(W, 1, q - 5, q), -slice(plain, 1, q - 5, q)) == 0);
    const Tensor half = matrix(*make(cell, {}));  // half of them unless said otherwise
    CHECK(difference(slice(half, 1, q / 2, q), -slice(plain, 1, q / 2, q)) == 0);
  }
}

TEST_CASE("ENRNN's W_C may start as a part of an orthogonal matrix: orthonormal rows, or columns if it is tall") {
  for (const std::string s : {"80", "32"}) {  // of 128 units
    const Tensor W = value(*make("enrnn", {{"short", s}, {"coupling_init", "orthogonal"}}), "W_C");
    const std::int64_t q = W.dim(0), width = W.dim(1);
    CHECK(q + width == n);
    const Tensor product = q < width ? matmul(W, W, {.transpose_b = true}) : matmul(W, W, {.transpose_a = true});
    CHECK(difference(product, eye(std::min(q, width), DType::f64)) < 1e-12);
  }
}

TEST_CASE("full-capacity uRNN starts at a matrix of uRNN") {
  const Given plain{{"modrelu", "plain"}};
  CHECK(difference(matrix(*make("full_urnn", plain)), matrix(*make("urnn", plain))) < 1e-12);
}

TEST_CASE("an odd last unit of 2 x 2 blocks stays alone") {
  Init init(7, DType::f64);
  const auto cell = make("scornn", {}, init, i, 65);
  skew(0, pi / 2, from_minus_tan).check(value(*cell, "A"));
}

TEST_CASE("angles of 2 x 2 blocks are rounded once, on every processor") {
  Init init(7, DType::f64), same(7, DType::f64);
  const auto A = init.skew_blocks(100, -0.1, 0.3, [](double u) { return u; }).values<double>();
  Stream random(same.seed(), same.stream());
  for (std::size_t j = 0; j < 100; j += 2) CHECK(A[101 * j + 1] == std::fma(0.3 + 0.1, random.uniform(), -0.1));
}
