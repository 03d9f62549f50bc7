// Gated recurrent unit (Cho et al. 2014) in both conventions: the reset gate after the product with h (PyTorch, cuDNN,
// GORU 2.2) or before it (the original).
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class Gru final : public Cell {
 public:
  Gru(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), after_(s.choice("reset") == "after") {
    const double k = 1 / std::sqrt(static_cast<double>(n));  // PyTorch's start: all uniform in +-1/sqrt(n)
    const bool two = s.choice("biases") == "2";
    if (two && !after_)
      throw OptionError("--gru.biases", "two biases are PyTorch's form, which resets after. Hint: --gru.biases 1");
    for (Gate* g : {&r_, &z_, &c_}) {
      const std::string name = g == &r_ ? "_r" : g == &z_ ? "_z" : "_c";
      g->U = parameter("U" + name, init.uniform({n, i}, k));
      g->W = parameter("W" + name, init.uniform({n, n}, k));
      g->b = parameter("b" + name, init.uniform({n}, k));
      if (two) g->b2 = parameter("b2" + name, init.uniform({n}, k));
    }
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    const Tensor r = sigmoid(r_.of_input(x) + r_.of_state(h));
    const Tensor z = sigmoid(z_.of_input(x) + z_.of_state(h));
    const Tensor c = tanh(c_.of_input(x) + (after_ ? r * c_.of_state(h) : c_.of_state(r * h)));
    return {z * h + (1 - z) * c};  // z keeps the old state
  }

 private:
  struct Gate {
    Tensor U, W, b, b2;
    Tensor of_input(const Tensor& x) const { return linear(x, U, b); }
    Tensor of_state(const Tensor& h) const { return b2.defined() ? linear(h, W, b2) : linear(h, W); }
  };
  bool after_;
  Gate r_, z_, c_;
};

REEL_CELL(
    {"gru",
     "gated recurrent unit",
     {{"reset",
       Setting::Kind::choice,
       "after",
       "the reset gate acts after or before the product with h",
       {"after", "before"}},
      {"biases", Setting::Kind::choice, "2", "bias vectors a gate: 1, or PyTorch's 2 (reset after only)", {"1", "2"}}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Gru>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
