// Non-normal RNN (Kerg et al. 2019): W = P (blocks + T) P^T in real Schur form, with P orthogonal, diagonal blocks of
// scaled rotations, and T above the blocks. Follows the paper; its code has mistakes that are not repeated here.
#include <cmath>

#include "cells/cayley.h"
#include "cells/modrelu.h"

namespace reel {
namespace {

class Nnrnn final : public Cell {
 public:
  Nnrnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), delta_(s.real("delta", 0)), decay_(s.real("T_decay", 0)) {
    if (n % 2 != 0) throw SettingError("hidden", fmt::format("nnrnn needs an even number of units, got {}", n));
    const std::int64_t m = n / 2;
    log_P = parameter("log_P", init.skew_blocks(n, 0, half_pi, [](double u) { return -std::tan(u / 2); }), "orthogonal",
                      n * (n - 1) / 2);
    theta = parameter("theta", init.uniform({m}, 0.0, 6.28));
    alpha = parameter("alpha", init.constant({m}, 1));
    T = parameter("T", init.constant({n, n}, 0), "", n * (n - 1) / 2 - m);
    U = parameter("U", init.normal({n, i}, std::sqrt(2 / static_cast<double>(i))));
    b = parameter("b", init.uniform({n}, 0.01));
    const Tensor pairs = reshape(concat({init.constant({m, 1}, 1), init.constant({m, 1}, 0)}, 1), {n});
    above_ = triu(1 - roll(diag_embed(pairs), 1, 1), 1);  // ones above the blocks: not at (2j, 2j + 1)
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {modrelu(linear(state[0], recurrent_matrix()) + linear(x, U), b)};  // h' = modReLU(W h + U x; b)
  }
  Tensor recurrent_matrix() const override {
    const Tensor c = alpha * cos(theta), s = alpha * sin(theta);
    const Tensor left = roll(diag_embed(interleave(s, zeros_like(s))), 1, 0);  // s at (2j + 1, 2j)
    const Tensor blocks = diag_embed(interleave(c, c)) + left - transpose(left);
    const Tensor P = matrix_exp(skew(log_P));
    return matmul(matmul(P, blocks + above_ * T), P, {.transpose_b = true});
  }
  /// delta sum (alpha - 1)^2 + decay / 2 |T|^2: the published code gives T_decay to the optimizer as a weight decay, so
  /// the gradient is T_decay T.
  Tensor penalty() const override {
    if (delta_ == 0 && decay_ == 0) return {};
    return delta_ * sum(square(alpha - 1)) + 0.5 * decay_ * sum(square(above_ * T));
  }

 private:
  /// a_1, b_1, a_2, b_2, ...
  static Tensor interleave(const Tensor& a, const Tensor& b) {
    return reshape(concat({reshape(a, {-1, 1}), reshape(b, {-1, 1})}, 1), {-1});
  }
  double delta_, decay_;
  Tensor log_P, theta, alpha, T, U, b, above_;
};

using enum Setting::Kind;
REEL_CELL({"nnrnn",
           "non-normal RNN in real Schur form",
           "Kerg et al. 2019",
           "n^2 + n/2 + n i",
           {{"delta", real, "1e-4", "weight of the penalty on alpha - 1", {}},
            {"T_decay", real, "1e-4", "weight decay of T: adds T_decay T to the gradient", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Nnrnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
