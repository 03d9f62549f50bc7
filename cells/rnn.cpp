// Vanilla recurrent network (Elman).
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class Rnn final : public Cell {
 public:
  Rnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), f_(s.choice("activation")) {
    const double k = 1 / std::sqrt(static_cast<double>(n));  // PyTorch's start: all uniform in +-1/sqrt(n)
    U = parameter("U", init.uniform({n, i}, k));
    W = parameter("W", init.uniform({n, n}, k));
    b = parameter("b", init.uniform({n}, k));
    if (s.choice("biases") == "2") b2 = parameter("b2", init.uniform({n}, k));
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    const Tensor u = b2.defined() ? linear(x, U, b) + b2 : linear(x, U, b);
    return {activate(f_, u + linear(h, W))};  // h' = f(W h + U x + b)
  }

 private:
  std::string f_;
  Tensor U, W, b, b2;
};

REEL_CELL({"rnn",
           "vanilla RNN",
           {{"activation", Setting::Kind::choice, "tanh", "f of h' = f(W h + U x + b)", activation_names()},
            {"biases", Setting::Kind::choice, "2", "bias vectors: 1, or PyTorch's 2", {"1", "2"}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Rnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
