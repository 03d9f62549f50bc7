// Full-capacity unitary RNN (Wisdom et al. 2016): z' = modReLU(W z + V x; b) with any unitary W, kept so by moving
// along the group: W <- (I + rate/2 A)^-1 (I - rate/2 A) W, A = G W^H - W G^H, G the gradient of W.
#include <cmath>

#include "cells/modrelu.h"
#include "cells/unitary.h"

namespace reel {
namespace {

void move_on_unitary_group(Tensor& W, const Tensor& G, double rate) {
  const Tensor A = matmul(G, W, {.transpose_b = true, .conj_b = true});
  const Tensor skew = A - conj(transpose(A));
  const Tensor moved = matmul(cayley(rate / 2 * skew), W);
  // One Newton step to the nearest unitary matrix, W (3 I - W^H W) / 2: without it the rounding of every update stays,
  // and after a thousand of them in single precision long gradients feel it.
  W.assign(1.5 * moved - 0.5 * matmul(moved, matmul(moved, moved, {.transpose_a = true, .conj_a = true})));
}

class FullUrnn final : public Cell {
 public:
  FullUrnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), modrelu_(modrelu_options(s.choice("modrelu"))) {
    const Tensor unit = eye(n, complex_of(init.dtype), *init.backend);
    W = transpose(restricted_unitary(n, init)(unit));  // rows W e_j: the columns of W
    add({.name = "W", .value = W, .group = "unitary", .free = n * n, .retract = move_on_unitary_group});
    V = parameter("V", init.complex_uniform({n, i}, std::sqrt(6 / static_cast<double>(i + 2 * n))));
    b = parameter("b", init.uniform({n}, 0.01));
    if (s.choice("initial") == "trained")
      z_0 = parameter("z_0", init.complex_uniform({n}, std::sqrt(3 / static_cast<double>(2 * n))));
  }
  std::vector<State> states() const override { return {{"z", hidden, true}}; }
  Tensors initial(std::int64_t batch) const override {
    return z_0.defined() ? Tensors{expand(z_0, {batch, hidden})} : Cell::initial(batch);
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {modrelu(linear(state[0], W) + linear_of_real(x, V), b, modrelu_)};
  }
  Tensor output(const Tensors& state) const override { return both_parts(state[0]); }
  std::int64_t outputs() const override { return 2 * hidden; }

 private:
  ModReluOptions modrelu_;
  Tensor W, V, b, z_0;
};

using enum Setting::Kind;
REEL_CELL({"full_urnn",
           "unitary RNN with any unitary matrix",
           "Wisdom et al. 2016",
           "n^2 + 2 n i + n + 2 n [initial=trained]",
           {{"modrelu", choice, "full_urnn", "whose small numbers", modrelu_names()},
            {"initial", choice, "trained", "the first state", {"trained", "zero"}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<FullUrnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
