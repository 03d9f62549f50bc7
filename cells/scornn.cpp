// Scaled Cayley orthogonal RNN (Helfrich, Willmott and Ye 2018): W = (I + A)^-1 (I - A) D, A skew, D a diagonal of
// signs.
#include "cells/cayley.h"
#include "cells/modrelu.h"

namespace reel {
namespace {

class Scornn final : public Cell {
 public:
  Scornn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), D(signs(n, negatives("scornn.negatives", s.integer("negatives", -1), n), init)) {
    A = parameter("A", init.skew_blocks(n, 0, half_pi, [](double u) { return -std::tan(u / 2); }), "orthogonal",
                  n * (n - 1) / 2);
    U = parameter("U", init.uniform({n, i}, 0.01));
    b = parameter("b", init.constant({n}, 0));
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {modrelu(linear(state[0], recurrent_matrix()) + linear(x, U), b)};  // h' = modReLU(W h + U x; b)
  }
  Tensor recurrent_matrix() const override { return cayley(skew(A), D); }

 private:
  Tensor D, A, U, b;
};

using enum Setting::Kind;
REEL_CELL({"scornn",
           "orthogonal RNN parametrised by the scaled Cayley transform",
           "Helfrich, Willmott and Ye 2018",
           "n (n - 1)/2 + n i + n",
           {{"negatives", integer, "-1", "number of -1 entries of D, the last ones; -1: half of them", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Scornn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
