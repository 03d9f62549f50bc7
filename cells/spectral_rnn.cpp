// Spectral RNN (Zhang, Lei and Dhillon 2018): W = U_H Sigma V_H^T, U_H and V_H products of Householder reflections,
// singular values within rho of 1.
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class SpectralRnn final : public Cell {
 public:
  SpectralRnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), rho_(s.real("rho", 0, 1)), f_(s.choice("activation")) {
    std::int64_t r = s.integer("reflections", 0);
    if (r == 0) r = std::max<std::int64_t>(1, n / 4);
    if (r > n)
      throw SettingError("spectral_rnn.reflections", fmt::format("at most {} (the units) expected, got {}", n, r));
    const std::int64_t free = n * r - r * (r - 1) / 2;
    U_H = parameter("U_H", init.glorot_uniform({r, n}), "orthogonal", free);
    V_H = parameter("V_H", init.glorot_uniform({r, n}), "orthogonal", free);
    p = parameter("p", init.constant({n}, 0));
    M = parameter("M", init.glorot_uniform({n, i}));
    b = parameter("b", init.constant({n}, 0));
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {activate(f_, linear(state[0], recurrent_matrix()) + linear(x, M, b))};  // h' = f(W h + M x + b)
  }
  Tensor recurrent_matrix() const override {
    const Tensor sigma = 1 + 2 * rho_ * (sigmoid(p) - 0.5);
    return matmul(product(U_H) * sigma, product(V_H), {.transpose_b = true});
  }
  void updated() override {
    U_H.assign(unit_rows(U_H));
    V_H.assign(unit_rows(V_H));
  }

 private:
  /// H(u_1) ... H(u_r), where u_k is row k with its first k - 1 entries set to 0.
  static Tensor product(const Tensor& rows) { return householder_product(transpose(triu(rows))); }
  static Tensor unit_rows(const Tensor& rows) { return triu(rows) / norm(triu(rows), 2, {1}, true); }

  double rho_;
  std::string f_;
  Tensor U_H, V_H, p, M, b;
};

using enum Setting::Kind;
REEL_CELL({"spectral_rnn",
           "RNN parametrised by its SVD: Householder reflections, singular values near 1",
           "Zhang, Lei and Dhillon 2018",
           "n i + 2 n + 2 n r - r (r - 1), r = reflections or max(1, floor(n/4))",
           {{"reflections", integer, "0", "r: number of reflections on each side; 0: a quarter of the units", {}},
            {"rho", real, "0.01", "maximum distance of the singular values from 1", {}},
            {"activation", choice, "relu", "f in h' = f(W h + M x + b)", activation_names()}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<SpectralRnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
