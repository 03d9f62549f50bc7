// Orthogonal RNNs by the matrix exponential (Lezcano-Casado and Martinez-Rubio 2019): W = exp(A), A skew. The dynamic
// form dtriv (Lezcano-Casado 2019) has W = B_0 exp(A), and moves its base B_0 to W every `rebase` updates.
#include <cmath>

#include "cells/cayley.h"
#include "cells/modrelu.h"

namespace reel {
namespace {

class Exprnn : public Cell {
 public:
  Exprnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init) {
    const bool henaff = s.choice("init") == "henaff";
    A = parameter("A",
                  henaff ? init.skew_blocks(n, -2 * half_pi, 2 * half_pi, [](double u) { return u; })
                         : init.skew_blocks(n, 0, half_pi, [](double u) { return -std::tan(u / 2); }),
                  "orthogonal", n * (n - 1) / 2);
    U = parameter("U", init.normal({n, i}, std::sqrt(2 / static_cast<double>(i))));  // Kaiming normal
    b = parameter("b", init.uniform({n}, 0.01));
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {modrelu(linear(state[0], recurrent_matrix()) + linear(x, U), b)};  // h' = modReLU(W h + U x; b)
  }

  Tensor recurrent_matrix() const override { return matrix_exp(skew(A)); }

 protected:
  Tensor A;

 private:
  Tensor U, b;
};

class Dtriv final : public Exprnn {
 public:
  Dtriv(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Exprnn(i, n, s, init), every_(s.integer("rebase", 1)), project_(s.integer("project", 0)) {
    B_0 = fixed("B_0", eye(n, init.dtype, *init.backend));
    updates_ = fixed("updates", Tensor::zeros({}, DType::i32, *init.backend));
    rebase();  // moves the initial W into B_0, so that A starts at 0
  }

  Tensor recurrent_matrix() const override { return matmul(B_0, matrix_exp(skew(A))); }
  void updated() override {
    updates_.assign(updates_ + 1.0);
    const auto count = static_cast<std::int64_t>(updates_.item());
    if (count % every_ != 0) return;
    rebase();
    // Rounding drifts B_0 off the orthogonal group. The first change is that of the constructor.
    if (project_ > 0 && (count / every_ + 1) % project_ == 0) B_0.assign(polar_factor(Arg(B_0)));
  }

 private:
  void rebase() {
    B_0.assign(recurrent_matrix());
    A.assign(zeros_like(A));
  }
  std::int64_t every_, project_;
  Tensor B_0, updates_;
};

using enum Setting::Kind;
const Setting start{"init",
                    choice,
                    "cayley",
                    "initial angles of A's blocks: cayley: -tan(u/2), u uniform in 0..pi/2; henaff: uniform in +-pi",
                    {"henaff", "cayley"}};
REEL_CELL({"exprnn",
           "orthogonal RNN parametrised by the matrix exponential",
           "Lezcano-Casado and Martinez-Rubio 2019",
           "n (n - 1)/2 + n i + n",
           {start},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Exprnn>(i, n, s, init);
           }})
REEL_CELL({"dtriv",
           "expRNN with dynamic trivialisation: a moving base point",
           "Lezcano-Casado 2019",
           "n (n - 1)/2 + n i + n",
           {start,
            {"rebase", integer, "100", "K: updates between changes of the base point", {}},
            {"project", integer, "100", "M: changes between projections onto the orthogonal matrices; 0: never", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Dtriv>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
