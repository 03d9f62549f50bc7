// Full-capacity unitary RNN (Wisdom et al. 2016): z' = modReLU(W z + V x; b) with any unitary W. Updates keep W unitary
// by moving along the group: W <- (I + rate/2 A)^-1 (I - rate/2 A) W, A = G W^H - W G^H, G the gradient of W.
#include "cells/unitary.h"

namespace reel {
namespace {

void move_on_unitary_group(Tensor& W, const Tensor& G, double rate) {
  const Tensor A = matmul(G, W, {.transpose_b = true, .conj_b = true});
  const Tensor skew = A - conj(transpose(A));
  const Tensor moved = matmul(cayley(rate / 2 * skew), W);
  // One Newton step to the nearest unitary matrix, W (3 I - W^H W) / 2. Without it rounding errors accumulate, and
  // after a thousand updates in single precision they affect long gradients.
  W.assign(1.5 * moved - 0.5 * matmul(moved, matmul(moved, moved, {.transpose_a = true, .conj_a = true})));
}

class FullUrnn final : public UnitaryRnn {
 public:
  FullUrnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : UnitaryRnn(i, n, s, init) {
    const Tensor unit = eye(n, complex_of(init.dtype), *init.backend);
    W = transpose(restricted_unitary(n, init)(unit));  // the rows W e_j are the columns of W
    add({.name = "W", .value = W, .group = "unitary", .free = n * n, .retract = move_on_unitary_group});
    name_inputs(init);
    name_initial(s, init);
  }

  Tensors step(const Tensors& state, const Tensor& x) const override { return next(linear(state[0], W), x); }
  Tensor recurrent_matrix() const override { return W; }

 private:
  Tensor W;
};

using enum Setting::Kind;
REEL_CELL({"full_urnn",
           "full-capacity unitary RNN",
           "Wisdom et al. 2016",
           "n^2 + 2 n i + n + 2 n [initial=trained]",
           {{"modrelu", choice, "full_urnn", "implementation whose modReLU constants are used", modrelu_names()},
            {"initial", choice, "trained", "initial state", {"trained", "zero"}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<FullUrnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
