// Eigenvalue normalised RNN (Helfrich and Ye 2020): a long-memory state with an orthogonal W_L (scoRNN), and a
// short-memory state with W_S = T / rho(T), whose eigenvalues lie in the unit disk.
#include <algorithm>
#include <cmath>

#include "cells/cayley.h"
#include "cells/modrelu.h"

namespace reel {
namespace {

class Enrnn final : public Cell {
 public:
  Enrnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init),
        short_(s.integer("short", 0) > 0 ? s.integer("short", 0) : std::max<std::int64_t>(2, n / 5 * 2)),
        long_(n - short_),
        epsilon_(s.real("epsilon", 0)),
        modrelu_(s.choice("activation") == "modrelu"),
        always_(s.on("normalise")),
        naive_(s.choice("normalise") == "naive") {
    if (s.integer("short", 0) == 0 && n < 3)
      throw SettingError("hidden", fmt::format("enrnn needs 3 units or more, got {}", n));
    if (long_ < 1) throw SettingError("enrnn.short", fmt::format("fewer than {} units expected, got {}", n, short_));
    if (short_ % 2 != 0)
      throw SettingError("enrnn.short",
                         fmt::format("an even number is needed, as T starts with blocks of 2, got {}", short_));
    D = signs(long_, negatives("enrnn.negatives", s.integer("negatives", -1), long_), init);
    A = parameter("A", init.skew_blocks(long_, 0, half_pi, [](double u) { return std::tan(u / 2); }), "orthogonal",
                  long_ * (long_ - 1) / 2);
    T = parameter("T", start_of_T(init));
    if (s.on("coupled")) W_C = parameter("W_C", start_of_W_C(s.choice("coupling_init"), init));
    if (s.choice("inputs") == "identity") {
      if (i != n)
        throw SettingError("enrnn.inputs",
                           fmt::format("the identity needs inputs as wide as the state, got {} and {}", i, n));
    } else {
      U_L = parameter("U_L", init.uniform({long_, i}, 0.01));
      U_S = parameter("U_S", init.uniform({short_, i}, 0.01));
    }
    b_L = parameter("b_L", init.constant({long_}, 0));
    b_S = parameter("b_S", init.constant({short_}, 0));
    // On the host, which decides by it what a step computes: it is read while a step is captured.
    if (s.choice("normalise") == "late") grown_ = fixed("grown", Tensor::zeros({}, DType::boolean, backend("cpu")));
  }
  std::vector<State> states() const override { return {{"h_L", long_}, {"h_S", short_}}; }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor &h_L = state[0], &h_S = state[1];
    const Tensor W_L = long_matrix(), W_S = short_matrix();
    const bool trained = U_L.defined();
    const Tensor x_L = trained ? linear(x, U_L) : slice(x, -1, 0, long_);
    const Tensor x_S = trained ? linear(x, U_S) : slice(x, -1, long_, hidden);
    const Tensor a = x_L + linear(h_L, W_L);
    return {f(W_C.defined() ? a + linear(h_S, W_C) : a, b_L), f(x_S + linear(h_S, W_S), b_S)};
  }
  Tensor output(const Tensors& state) const override { return concat({state[0], state[1]}, -1); }
  /// [W_L, W_C; 0, W_S]
  Tensor recurrent_matrix() const override {
    const Tensor across = W_C.defined() ? W_C : Tensor::zeros({long_, short_}, dtype(), device());
    return concat({concat({long_matrix(), across}, 1), pad(short_matrix(), 1, long_, 0)}, 0);
  }

  /// Uses T unchanged until its spectral radius first exceeds 1, and divides T by the radius from then on. naive:
  /// divides the parameter itself after each update that takes it past 1, which no gradient sees.
  void updated() override {
    if (naive_) {
      const Tensor rho = radius();
      if (rho.item() > 1) T.assign(T / cast(rho + epsilon_, T.dtype()));
    }
    if (grown_.defined() && !normalised() && radius().item() > 1) grown_.assign(logical_not(grown_));
  }

 private:
  Tensor long_matrix() const { return cayley(skew(A), D); }
  Tensor short_matrix() const { return normalised() ? T / cast(radius() + epsilon_, T.dtype()) : T; }
  /// In f64, because rounding perturbs the eigenvalues of a non-normal matrix far more than its elements.
  Tensor radius() const { return warm_spectral_radius(cast(T, DType::f64), leading_); }
  bool normalised() const { return always_ || (grown_.defined() && grown_.item() != 0); }
  Tensor f(const Tensor& a, const Tensor& b) const { return modrelu_ ? modrelu(a, b) : relu(a + b); }
  /// The initial T: 2 x 2 blocks gamma rot(t), gamma uniform in +-1, t uniform in 0..pi/2.
  Tensor start_of_T(Init& init) const {
    std::vector<double> T_0(static_cast<std::size_t>(short_ * short_));
    Stream random(init.seed(), init.stream());
    for (std::int64_t j = 0; j < short_; j += 2) {
      const double t = half_pi * random.uniform(), gamma = 2 * random.uniform() - 1;
      const auto at = [&](std::int64_t r, std::int64_t c) -> double& {
        return T_0[static_cast<std::size_t>((j + r) * short_ + j + c)];
      };
      at(0, 0) = at(1, 1) = gamma * std::cos(t);
      at(0, 1) = -gamma * std::sin(t);
      at(1, 0) = gamma * std::sin(t);
    }
    return cast(Tensor::from(std::span<const double>(T_0), {short_, short_}, *init.backend), init.dtype);
  }

  /// The initial W_C: Glorot's, or that part of a random orthogonal matrix.
  Tensor start_of_W_C(const std::string& kind, Init& init) const {
    if (kind == "glorot") return init.glorot_uniform({long_, short_});
    const Tensor Q = init.orthogonal(std::max(long_, short_));
    return slice(slice(Q, 0, 0, long_), 1, 0, short_);
  }

  std::int64_t short_, long_;
  double epsilon_;
  bool modrelu_, always_, naive_;
  std::shared_ptr<LeadingColumns> leading_ = leading_columns(short_);
  Tensor D, A, T, W_C, U_L, U_S, b_L, b_S, grown_;
};

using enum Setting::Kind;
REEL_CELL(
    {"enrnn",
     "eigenvalue-normalised RNN combined with an orthogonal RNN",
     "Helfrich and Ye 2020",
     "n i [inputs=trained] + n + q (q - 1)/2 + s^2 + q s [coupled=on], s = short or max(2, 2 floor(n/5)), q = n - s",
     {{"short", integer, "0", "units of the short-memory state, an even number; 0: two fifths", {}},
      {"negatives", integer, "-1", "number of -1 entries of D in the long-memory part; -1: half of them", {}},
      {"coupled", choice, "on", "the short-memory state feeds into the long-memory state", {"on", "off"}},
      {"normalise",
       choice,
       "late",
       "divide T by its spectral radius: late: once an update has taken it above 1 (the paper); on: always; off: "
       "never; naive: after each update that takes it above 1, without a gradient through the radius",
       {"late", "on", "off", "naive"}},
      {"activation", choice, "modrelu", "activation of both states; relu adds the biases", {"modrelu", "relu"}},
      {"inputs",
       choice,
       "trained",
       "input weights: U, or the identity on an embedding as wide as the state",
       {"trained", "identity"}},
      {"epsilon", real, "0", "added to the spectral radius", {}, "normalise!=off"},
      {"coupling_init",
       choice,
       "glorot",
       "initialisation of W_C; orthogonal: part of an orthogonal matrix",
       {"glorot", "orthogonal"},
       "coupled=on"}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Enrnn>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
