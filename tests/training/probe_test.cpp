// What pictures are drawn from: states over time, Jacobians of states by inputs, success maps, and what a trained
// network's pictures leave in its folder.
#include "tasks/training/probe.h"

#include "tasks/app/success_map.h"
#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
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

TEST_CASE("--picture: states with the shift undone, changes, gradients, with their numbers; of a finished run") {
  const TempDir dir;
  const std::string out = dir / "run";
  REQUIRE(run("adding", {"--length", "12", "--hidden", "16", "--layers", "2", "--steps", "5", "--quiet", "--out", out},
              dir.path)
              .code == 0);
  const Result r = run("adding", {"--resume", out, "--picture", "states,changes,gradients"}, dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const TensorFile states = load_safetensors(out + "/states.safetensors");
  const TensorFile changes = load_safetensors(out + "/changes.safetensors");
  CHECK(states.at("1-h").shape() == Shape{12, 16});
  CHECK(elements(states.at("2-h")) == elements(changes.at("2-h")));
  const Tensor norms = load_safetensors(out + "/gradients.safetensors").at("2-h");
  CHECK(norms.shape() == Shape{12, 12});
  for (const std::string name : {"states-1-h", "states-2-h", "changes-2-h", "gradients-1-h"}) {
    CAPTURE(name);
    const std::string said = std::system("command -v gnuplot >/dev/null 2>&1") == 0 ? "picture: " : "no picture ";
    CHECK(contains(r.out, said + out + "/" + name + ".svg"));
  }
  CHECK(contains(r.err, "gradients of states"));
  CHECK(run("adding", {"--resume", out, "--picture", "gradients", "--quiet"}, dir.path).err == "");
  const Result wrong = run("adding", {"--picture", "states,stats"}, dir.path);
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "--picture: stats is not one of states, changes, gradients"));
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
