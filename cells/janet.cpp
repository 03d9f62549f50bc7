// JANET, "just another network" (van der Westhuizen and Lasenby 2018): an LSTM with the forget gate alone.
#include "cells/gate.h"

namespace reel {
namespace {

class Janet final : public Cell {
 public:
  Janet(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), beta_(s.real("beta")) {
    const double longest = s.real("chrono", 2, 1 << 24);
    const Tensor times = s.choice("chrono_draw") == "whole" ? floor(init.uniform({n}, 1.0, std::floor(longest) + 1))
                                                            : init.uniform({n}, 1.0, longest);  // as JANET's code
    U_f = parameter("U_f", init.glorot_normal({n, i}));
    W_f = parameter("W_f", init.orthogonal(n));
    b_f = parameter("b_f", log(times));  // chrono initialisation
    U_c = parameter("U_c", init.glorot_normal({n, i}));
    W_c = parameter("W_c", init.orthogonal(n));
    b_c = parameter("b_c", init.constant({n}, 0));
    if (s.choice("norm") == "layer")
      norm_ = {parameter("g_c", init.constant({n}, 1)), parameter("beta_c", init.constant({n}, 0))};
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    const Tensor a = linear(x, U_f, b_f) + linear(h, W_f);
    const Tensor c = tanh(norm_(linear(x, U_c, b_c) + linear(h, W_c)));
    return {sigmoid(a) * h + (1 - sigmoid(a - beta_)) * c};
  }

 private:
  double beta_;
  Tensor U_f, W_f, b_f, U_c, W_c, b_c;
  Norm norm_;
};

using enum Setting::Kind;
REEL_CELL(
    {"janet",
     "LSTM with only a forget gate",
     "van der Westhuizen and Lasenby 2018",
     "2 (n i + n^2 + n) + 2 n [norm=layer]",
     {{"beta", real, "0", "shift of the write gate, 1 - sigmoid(a - beta): 0 as in NRU, 1 as in JANET's code", {}},
      {"chrono", real, "784", "chrono initialisation of the forget gate's bias: longest time", {}},
      {"chrono_draw", choice, "real", "chrono initialisation: real (JANET) or integer (NRU) times", {"real", "whole"}},
      {"norm", choice, "none", "layer normalisation of the candidate", {"none", "layer"}}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Janet>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
