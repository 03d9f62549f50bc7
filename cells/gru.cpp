// Gated recurrent unit (Cho et al. 2014) in both conventions: the reset gate after the product with h (PyTorch, cuDNN,
// GORU 2.2) or before it (the original).
#include <cmath>

#include "cells/gate.h"
#include "cells/modrelu.h"

namespace reel {
namespace {

class Gru final : public Cell {
 public:
  Gru(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), after_(s.choice("reset") == "after"), modrelu_(s.choice("activation") == "modrelu") {
    const bool two = s.choice("biases") == "2", pytorch = s.choice("init") == "pytorch",
               normed = s.choice("norm") == "layer";
    if (two && !after_)
      throw SettingError("gru.biases", "two biases are PyTorch's form, which resets after", {"gru.biases", "1"});
    if (two && modrelu_) throw SettingError("gru.biases", "modReLU has its bias as a threshold", {"gru.biases", "1"});
    if (normed && modrelu_) throw SettingError("gru.norm", "modReLU goes without layer normalisation");
    const double k = 1 / std::sqrt(static_cast<double>(n));  // PyTorch's initialisation: all uniform in +-1/sqrt(n)
    for (Gate* g : {&r_, &z_, &c_}) {
      const std::string name = g == &r_ ? "_r" : g == &z_ ? "_z" : "_c";
      g->U = parameter("U" + name, pytorch ? init.uniform({n, i}, k) : init.glorot_normal({n, i}));
      g->W = parameter("W" + name, pytorch ? init.uniform({n, n}, k) : init.orthogonal(n));
      g->b = parameter("b" + name, pytorch ? init.uniform({n}, k) : init.constant({n}, 0));
      if (two) g->b2 = parameter("b2" + name, pytorch ? init.uniform({n}, k) : init.constant({n}, 0));
      if (normed)
        g->norm = {parameter("g" + name, init.constant({n}, 1)), parameter("beta" + name, init.constant({n}, 0))};
    }
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    const Tensor r = sigmoid(r_.norm(r_.of_input(x) + r_.of_state(h)));
    const Tensor z = sigmoid(z_.norm(z_.of_input(x) + z_.of_state(h)));
    const Tensor turned = after_ ? r * c_.of_state(h) : c_.of_state(r * h);
    const Tensor c = modrelu_ ? modrelu(linear(x, c_.U) + turned, c_.b, modrelu_options("goru"))
                              : tanh(c_.norm(c_.of_input(x) + turned));
    return {z * h + (1 - z) * c};  // z keeps the old state
  }

 private:
  struct Gate {
    Tensor U, W, b, b2;
    Norm norm;
    Tensor of_input(const Tensor& x) const { return linear(x, U, b); }
    Tensor of_state(const Tensor& h) const { return b2.defined() ? linear(h, W, b2) : linear(h, W); }
  };
  bool after_, modrelu_;
  Gate r_, z_, c_;
};

using enum Setting::Kind;
REEL_CELL(
    {"gru",
     "gated recurrent unit",
     "Cho et al. 2014; with the reset gate after the product, Jing et al. 2019, equations 2.2-2.4",
     "3 (n i + n^2 + biases n) + 6 n [norm=layer]",
     {{"reset", choice, "after", "apply the reset gate after or before the matrix product with h", {"after", "before"}},
      {"biases", choice, "2", "bias vectors per gate: 1, or PyTorch's 2 (reset after only)", {"1", "2"}},
      {"activation",
       choice,
       "tanh",
       "activation of the candidate; modReLU uses its bias as threshold",
       {"tanh", "modrelu"}},
      {"norm", choice, "none", "layer normalisation of the three pre-activations", {"none", "layer"}},
      {"init",
       choice,
       "pytorch",
       "initialisation: uniform in +-1/sqrt(n), or Glorot normal with orthogonal recurrent matrices (NRU's baseline)",
       {"pytorch", "orthogonal"}}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Gru>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
