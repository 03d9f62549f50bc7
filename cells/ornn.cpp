// Orthogonal RNN of Householder reflections (Mhammedi et al. 2017): W = H(u_1) ... H(u_m), where the first k - 1
// entries of u_k are 0.
#include <cmath>

#include "cells/modrelu.h"

namespace reel {
namespace {

class Ornn final : public Cell {
 public:
  Ornn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init),
        m(s.integer("reflections", 0) > 0 ? s.integer("reflections", 0) : std::min<std::int64_t>(16, n)),
        f_(s.choice("activation")) {
    if (m > n) throw SettingError("ornn.reflections", fmt::format("at most {} (the units) expected, got {}", n, m));
    if (n % 2 != 0 && (f_ == "oplu" || f_ == "modrelu_pairs"))
      throw SettingError("hidden",
                         fmt::format("{} works on pairs, so an even number of units is needed, got {}", f_, n));
    U = parameter("U", unit_columns(tril(init.normal({n, m}, 0.01))), "orthogonal", n * m - m * (m - 1) / 2);
    V = parameter("V", init.glorot_uniform({n, i}));
    b = parameter("b", init.constant({n}, 0));
    if (s.choice("initial") == "trained")
      h_0 = parameter("h_0", init.uniform({n}, std::sqrt(3 / static_cast<double>(2 * n))));
  }
  Tensors initial(std::int64_t batch) const override {
    return h_0.defined() ? Tensors{expand(h_0, {batch, hidden})} : Cell::initial(batch);
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor z = turned(state[0]) + linear(x, V);  // h' = f(W h + V x, b)
    if (f_ == "modrelu") return {modrelu(z, b)};
    if (f_ == "modrelu_pairs") return {modrelu_pairs(z)};
    if (f_ == "oplu") return {oplu(z + b)};
    return {f_ == "leaky_relu" ? leaky_relu(z + b, 0.1) : activate(f_, z + b)};
  }
  Tensor recurrent_matrix() const override { return transpose(turned(eye(hidden, dtype(), device()))); }
  void updated() override { U.assign(unit_columns(U)); }

 private:
  /// W h. With m = n the last factor is the sign of U_nn, applied to the last unit.
  Tensor turned(const Tensor& h) const {
    const std::int64_t n = hidden, reflections = std::min(m, n - 1);
    const Tensor lower = slice(tril(U), 1, 0, reflections);
    Tensor turned = h;
    if (m == n) turned = h * pad(sign(slice(slice(U, 0, n - 1, n), 1, n - 1, n)) - 1, 1, n - 1, 0) + h;
    return 2 * reflections < n ? householder_apply(turned, lower) : linear(turned, householder_product(lower));
  }
  static Tensor unit_columns(const Tensor& U) { return U / norm(U, 2, {0}, true); }
  /// OPLU: of each pair (a_j, a_{j + n/2}) the larger goes into the first half, the smaller into the second.
  static Tensor oplu(const Tensor& a) {
    const Tensors halves = split(a, 2);
    return concat({maximum(halves[0], halves[1]), minimum(halves[0], halves[1])}, -1);
  }
  /// As in the official code: pairs (z_j, z_{j + n/2}), with |z|^2 where the definition has |z|; only half of b is
  /// used.
  Tensor modrelu_pairs(const Tensor& z) const {
    const Tensors halves = split(z, 2);
    const Tensor square = halves[0] * halves[0] + halves[1] * halves[1];
    const Tensor scale = relu(square + split(b, 2)[0]) / where(equal(square, 0), 1, square);
    return concat({scale * halves[0], scale * halves[1]}, -1);
  }

  const std::int64_t m;
  std::string f_;
  Tensor U, V, b, h_0;
};

using enum Setting::Kind;
REEL_CELL(
    {"ornn",
     "orthogonal RNN of Householder reflections",
     "Mhammedi et al. 2017",
     "n i + n + n m - m (m - 1)/2 + n [initial=trained], m = reflections or min(16, n)",
     {{"reflections", integer, "0", "m: number of reflections; n of them reach every orthogonal matrix; 0: 16", {}},
      {"activation",
       choice,
       "leaky_relu",
       "activation; modrelu_pairs is that of the official code",
       {"leaky_relu", "tanh", "relu", "oplu", "modrelu", "modrelu_pairs"}},
      {"initial", choice, "trained", "initial state", {"trained", "zero"}}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Ornn>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
