// What pictures are drawn from: states over time, Jacobians of states by inputs, success maps, and what a trained
// network's pictures leave in its folder.
#include "tasks/training/probe.h"

#include <filesystem>

#include "tasks/app/success_map.h"
#include "tasks/io/files.h"
#include "tasks/training/model.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::unique_ptr<Cell> make(const std::string& name, std::int64_t input, std::int64_t hidden,
                           const std::map<std::string, std::string>& settings = {}) {
  const CellType& type = cell_type(name);
  Init init(7, DType::f64);
  return type.make(input, hidden, Settings(name, type.settings, settings), init);
}

/// The states of all times by plain steps.
std::vector<Tensors> by_steps(const Cell& cell, const Tensor& x) {
  std::vector<Tensors> all;
  Tensors state = cell.initial(x.dim(1));
  for (std::int64_t t = 0; t < x.dim(0); ++t) all.push_back(state = cell.step(state, at(x, t)));
  return all;
}

/// The largest singular value of d s_t / d x_u by central differences.
double norm_by_differences(const Cell& cell, const Tensor& x, std::size_t s, std::int64_t t, std::int64_t u) {
  constexpr double h = 1e-6;
  Tensors columns;
  for (std::int64_t i = 0; i < x.dim(2); ++i) {
    const auto moved = [&](double by) {
      auto values = x.values<double>();
      values[static_cast<std::size_t>(u * x.dim(2) + i)] += by;
      return by_steps(cell, Tensor::from<double>(values, x.shape())).at(static_cast<std::size_t>(t))[s];
    };
    const Tensor d = (moved(h) - moved(-h)) / (2 * h);  // [1, width]
    columns.push_back(is_complex(d.dtype()) ? concat({real(d), imag(d)}, -1) : d);
  }
  return slice(svd(concat(columns, 0)).S, 0, 0, 1).values<double>()[0];
}

/// h' = tanh(W x + h), beside a state without units.
class WithEmptyState final : public Cell {
 public:
  explicit WithEmptyState(Init init) : Cell(2, 3, init) { W_ = parameter("W", init.glorot_uniform({3, 2})); }
  std::vector<State> states() const override { return {{"h", hidden}, {"none", 0}}; }
  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {tanh(linear(x, W_) + state[0]), state[1]};
  }

 private:
  Tensor W_;
};

}  // namespace

TEST_CASE("states over time are those of the steps, for cells with several and with complex ones") {
  const Tensor x = random({7, 3, 2}, 1);
  for (const std::string name : {"srnn", "lstm", "nru", "enrnn", "urnn", "goru"}) {
    CAPTURE(name);
    const auto cell = make(name, 2, 16);
    const Tensors states = states_over_time(*cell, x);
    REQUIRE(states.size() == cell->states().size());
    REQUIRE(state_names(*cell).size() == states.size());
    const auto expected = by_steps(*cell, x);
    for (std::size_t s = 0; s < states.size(); ++s)
      for (std::int64_t t = 0; t < 7; ++t)
        CHECK(difference(at(states[s], t), expected[static_cast<std::size_t>(t)][s]) < 1e-12);
  }
  const auto sees_all = make("r_transformer", 2, 16);
  CHECK(states_over_time(*sees_all, x).at(0).shape() == Shape{7, 3, 16});
}

TEST_CASE("layers of a model with zoneout: their states are those of the model's steps") {
  const Tensor x = random({6, 2, 3}, 5);
  const Model model({.inputs = 3, .outputs = 2}, {.cell = "gru", .hidden = 5, .layers = 2, .zoneout = 0.4},
                    Init(2, DType::f64));
  Tensors states;
  std::vector<Tensors> expected;
  for (std::int64_t t = 0; t < 6; ++t) {
    model.step(at(x, t), states);
    expected.push_back(states);
  }
  const auto layers = model.layers(x);
  REQUIRE(layers.size() == 2);
  for (std::size_t l = 0; l < 2; ++l) {
    CHECK(layers[l].layer == l + 1);
    CHECK_FALSE(layers[l].backward);
    const Tensor seen = states_over_time(*layers[l].cell, layers[l].x, layers[l].zoneout)[0];
    for (std::int64_t t = 0; t < 6; ++t)
      CHECK(difference(at(seen, t), expected[static_cast<std::size_t>(t)][l]) < 1e-14);
  }
  // A step's Jacobian is the mean of those with and without the step.
  const Tensor h = random({1, 5}, 6), in = random({1, 3}, 7);
  const Tensor plain = step_jacobian(*layers[0].cell, {h}, in);
  const Tensor zoned = step_jacobian(*layers[0].cell, {h}, in, layers[0].zoneout);
  CHECK(difference(zoned, 0.4 * eye(5, DType::f64) + 0.6 * plain) < 1e-14);
}

TEST_CASE("norms of Jacobians are those of central differences; later inputs have none") {
  const Tensor x = random({9, 1, 3}, 2);
  for (const std::string name : {"rnn", "enrnn", "lstm", "urnn"}) {
    CAPTURE(name);
    const auto cell = make(name, 3, 6);
    const JacobianNorms all = jacobian_norms(*cell, x, 9);
    REQUIRE(all.times.size() == 9);
    for (std::size_t s = 0; s < all.norms.size(); ++s) {
      for (std::int64_t t = 0; t < 9; ++t) {
        for (std::int64_t u = 0; u < 9; ++u) {
          const double got = all.norms[s][static_cast<std::size_t>(t * 9 + u)];
          if (u > t)
            CHECK(std::isnan(got));
          else
            CHECK(got == doctest::Approx(norm_by_differences(*cell, x, s, t, u)).epsilon(1e-5));
        }
      }
    }
    const JacobianNorms few = jacobian_norms(*cell, x, 4);  // every third time
    CHECK(few.times == std::vector<std::int64_t>{0, 3, 6});
    CHECK(few.norms[0][7] == doctest::Approx(all.norms[0][6 * 9 + 3]));
  }
}

TEST_CASE("a state without units has no norms, and takes none from the others") {
  const WithEmptyState cell(Init(1, DType::f64));
  const Tensor x = random({4, 1, 2}, 3);
  const JacobianNorms all = jacobian_norms(cell, x, 4);
  REQUIRE(all.norms.size() == 2);
  CHECK(all.norms[0][3 * 4 + 1] == doctest::Approx(norm_by_differences(cell, x, 0, 3, 1)));
  for (const double norm : all.norms[1]) CHECK(std::isnan(norm));
  const Tensor h = random({1, 3}, 4);
  const Tensor after = cell.step({h, Tensor::zeros({1, 0}, DType::f64)}, at(x, 0))[0];
  const Tensor J = step_jacobian(cell, {h, Tensor::zeros({1, 0}, DType::f64)}, at(x, 0));
  CHECK(difference(J, diag_embed(reshape(1.0 - square(after), {3}))) < 1e-12);
}

TEST_CASE("norms of Jacobians whose rows do not fit into one backward pass") {
  // h = W x + h: all Jacobians are W, a column, whose norm is its length
  constexpr std::int64_t T = 4200, n = 64;  // 2^24 numbers are 62 rows
  const auto cell = make("lt_irnn", 1, n, {{"activation", "identity"}});
  const Tensor W = cell->parameters()[0].value;
  REQUIRE(W.shape() == Shape{n, 1});
  const JacobianNorms all = jacobian_norms(*cell, random({T, 1, 1}, 2), 2);
  CHECK(all.times == std::vector<std::int64_t>{0, T / 2});
  for (const std::size_t place : {0, 2, 3})
    CHECK(all.norms[0][place] == doctest::Approx(sqrt(sum(square(W))).item()).epsilon(1e-12));
}

TEST_CASE("the Jacobian of a step is that of central differences, of all states at once") {
  constexpr double h = 1e-6;
  const Tensor x = random({1, 2}, 3);
  for (const std::string name : {"lstm", "enrnn", "urnn", "nru", "sru"}) {
    CAPTURE(name);
    const auto cell = make(name, 2, 6);
    Tensors states = cell->initial(1);
    for (std::size_t s = 0; s < states.size(); ++s)
      states[s] = states[s] + random(states[s].shape(), 10 + s, states[s].dtype());
    const auto flat = [](const Tensors& all) {
      Tensors parts;
      for (const Tensor& s : all) parts.push_back(is_complex(s.dtype()) ? concat({real(s), imag(s)}, 1) : s);
      return concat(parts, 1);
    };
    Tensors columns;  // of the Jacobian, one for each real number of the states
    for (std::size_t s = 0; s < states.size(); ++s) {
      const bool is_c = is_complex(states[s].dtype());
      for (std::int64_t k = 0; k < (is_c ? 2 : 1) * states[s].dim(1); ++k) {
        const std::int64_t width = states[s].dim(1);
        const Tensor unit = slice(eye(width, DType::f64), 0, k % width, k % width + 1), none = zeros_like(unit);
        const Tensor d = !is_c ? unit : k < width ? complex(unit, none) : complex(none, unit);
        const auto moved = [&](double by) {
          Tensors at = states;
          at[s] = at[s] + by * d;
          return flat(cell->step(at, x));
        };
        columns.push_back((moved(h) - moved(-h)) / (2 * h));
      }
    }
    CHECK(difference(step_jacobian(*cell, states, x), transpose(concat(columns, 0))) < 1e-7);
  }
}

TEST_CASE("a step's Jacobian is its recurrent matrix up to the slope of the activation") {
  const Tensor x = random({1, 2}, 4);
  for (const auto& [name, settings] :
       std::vector<std::pair<std::string, std::map<std::string, std::string>>>{{"rnn", {}},
                                                                               {"exprnn", {}},
                                                                               {"dtriv", {}},
                                                                               {"scornn", {}},
                                                                               {"nnrnn", {}},
                                                                               {"spectral_rnn", {}},
                                                                               {"ornn", {{"activation", "tanh"}}},
                                                                               {"ornn", {{"reflections", "8"}}},
                                                                               {"eurnn", {}},
                                                                               {"lt_rnn", {}},
                                                                               {"srnn", {}},
                                                                               {"enrnn", {{"activation", "relu"}}},
                                                                               {"enrnn", {{"normalise", "on"}}}}) {
    CAPTURE(name);
    const auto cell = make(name, 2, 8, settings);
    const Tensor W = cell->recurrent_matrix();
    REQUIRE(W.shape() == Shape{8, 8});
    Tensors states = cell->initial(1);
    for (std::size_t s = 0; s < states.size(); ++s) states[s] = states[s] + random(states[s].shape(), 20 + s);
    // J = D W: each row of J is a multiple of the row of W, between 0 and 1 for these activations
    const auto J = step_jacobian(*cell, states, x).values<double>(), rows = W.values<double>();
    double largest = 0;
    for (std::size_t r = 0; r < 8; ++r) {
      double along = 0, length = 0;
      for (std::size_t c = 0; c < 8; ++c) {
        along += J[r * 8 + c] * rows[r * 8 + c];
        length += rows[r * 8 + c] * rows[r * 8 + c];
      }
      const double slope = along / length;
      CHECK(slope >= 0);
      CHECK(slope <= 1 + 1e-12);
      largest = std::max(largest, slope);
      for (std::size_t c = 0; c < 8; ++c) CHECK(J[r * 8 + c] == doctest::Approx(slope * rows[r * 8 + c]).epsilon(1e-9));
    }
    CHECK(largest > 0);  // not all units are off
  }
  // complex ones: W z by columns, and a unitary matrix
  for (const std::string name : {"urnn", "full_urnn"}) {
    const Tensor W = make(name, 2, 8)->recurrent_matrix();
    CHECK(difference(matmul(conj(W), W, {.transpose_a = true}),
                     complex(eye(8, DType::f64), Tensor::zeros({8, 8}, DType::f64))) < 1e-12);
  }
  for (const std::string name : {"lstm", "gru", "goru", "nru", "sru", "janet"})
    CHECK_FALSE(make(name, 2, 8)->recurrent_matrix().defined());
}

TEST_CASE("--picture of a bidirectional model: both directions by name, in the order of the sequence") {
  const TempDir dir;
  const std::string out = dir / "run";
  const Result r = run("adding",
                       {"--cell", "gru", "--bidirectional", "--length", "9", "--hidden", "4", "--steps", "2", "--quiet",
                        "--out", out, "--picture", "states,changes,gradients,eigenvalues"},
                       dir.path);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const TensorFile states = load_safetensors(out + "/states.safetensors");
  const TensorFile changes = load_safetensors(out + "/changes.safetensors");
  const Tensor &forward = states.at("1-forward-h"), &backward = states.at("1-backward-h");
  // Each direction begins with 0: at the first step, and at the last.
  CHECK(difference(at(changes.at("1-forward-h"), 0), at(forward, 0)) < 1e-6);
  CHECK(difference(at(changes.at("1-backward-h"), 8), at(backward, 8)) < 1e-6);
  CHECK(difference(at(changes.at("1-backward-h"), 2), at(backward, 2) - at(backward, 3)) < 1e-6);
  CHECK(std::filesystem::exists(out + "/gradients.safetensors"));
  CHECK(contains(r.out, out + "/gradients-1-backward-h.svg"));
  CHECK(contains(r.out, out + "/eigenvalues-1-forward.svg"));
}

TEST_CASE("--picture: states with the shift undone, changes, gradients, with their numbers; of a finished run") {
  const TempDir dir;
  const std::string out = dir / "run";
  REQUIRE(run("adding", {"--length", "12", "--hidden", "16", "--layers", "2", "--steps", "5", "--quiet", "--out", out},
              dir.path)
              .code == 0);
  const Result r = run("adding", {"--resume", out, "--picture", "states,changes,gradients,eigenvalues"}, dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const TensorFile states = load_safetensors(out + "/states.safetensors");
  const TensorFile changes = load_safetensors(out + "/changes.safetensors");
  CHECK(states.at("1-h").shape() == Shape{12, 16});
  const Tensor& h = states.at("2-h");
  CHECK(difference(slice(changes.at("2-h"), 0, 1, 12), slice(h, 0, 1, 12) - slice(h, 0, 0, 11)) < 1e-6);
  CHECK(difference(at(changes.at("2-h"), 0), at(h, 0)) < 1e-6);  // before it, 0
  const Tensor norms = load_safetensors(out + "/gradients.safetensors").at("2-h");
  CHECK(norms.shape() == Shape{12, 12});
  for (const std::string name : {"states-1-h", "states-2-h", "changes-2-h", "gradients-1-h", "eigenvalues-2"}) {
    CAPTURE(name);
    const std::string said = has_gnuplot() ? "picture: " : "no picture ";
    CHECK(contains(r.out, said + out + "/" + name + ".svg"));
  }
  if (has_gnuplot()) {
    const std::string svg = read_file(out + "/states-1-h.svg");
    CHECK(contains(svg, ">h of layer 1<"));
    CHECK_FALSE(contains(svg, ">1-h<"));
    CHECK(contains(read_file(out + "/gradients-2-h.svg"), ">spectral norm ‖∂h(t) / ∂x(u)‖<"));
  }
  if (has_gnuplot()) CHECK(contains(read_file(out + "/gradients-2-h.svg"), ">step u of the input x of layer 2<"));
  // SRNN's matrix is a cycle of 16 units: its eigenvalues are the 16th roots of 1, trained or not
  const TensorFile spectra = load_safetensors(out + "/eigenvalues.safetensors");
  for (const std::string when : {"1-before", "2-after"}) {
    const Tensor roots = spectra.at(when);
    REQUIRE(roots.shape() == Shape{16});
    Tensor power = roots;
    for (int k = 0; k < 4; ++k) power = power * power;
    CHECK(max(abs(power - 1)).item() < 1e-12);
    CHECK(abs(sum(roots)).item() < 1e-12);
  }
  CHECK(contains(r.err, "gradients of states"));
  CHECK(run("adding", {"--resume", out, "--picture", "gradients", "--quiet"}, dir.path).err == "");
  const Result wrong = run("adding", {"--picture", "states,stats"}, dir.path);
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "--picture: stats is not one of states, changes, gradients, eigenvalues"));
}

TEST_CASE("a success map adds up tables, and says what is wrong with an empty one") {
  SuccessMap map;
  CHECK(map.draws_of_a_field() == 0);
  CHECK(contains(map.draw("x.svg", "").value_or(""), "no picture"));
  map.add("K\tS\tplanes\tT\tright\tdraws\n2\t5\t8\t100\t7\t10\n4\t5\t8\t100\t3\t10\n");
  map.add("K\tS\tplanes\tT\tright\tdraws\n2\t5\t8\t100\t9\t10\nhalf a li");
  CHECK(map.right() == 19);
  CHECK(map.draws() == 30);
  CHECK(map.draws_of_a_field() == 20);
}
