// Vanilla recurrent network (Elman), with the initialisations that made it remember: IRNN (Le et al. 2015), and the
// RNN-id and RNN-orth with layer normalisation from the NRU paper's comparison.
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class Rnn final : public Cell {
 public:
  Rnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), f_(s.choice("activation")) {
    const std::string& start = s.choice("init");
    const bool pytorch = start == "pytorch", two = s.choice("biases") == "2", norm = s.choice("norm") == "layer";
    if (two && norm)
      throw SettingError(s.path("biases"), "layer normalisation takes one bias, as it has an offset of its own",
                         {s.path("biases"), "1"});
    const double k = 1 / std::sqrt(static_cast<double>(n));  // PyTorch: all uniform in +-1/sqrt(n)
    U = parameter("U", pytorch           ? init.uniform({n, i}, k)
                       : start == "irnn" ? init.normal({n, i}, 1e-3)
                                         : init.glorot_normal({n, i}, std::sqrt(2.0)));
    W = parameter("W", pytorch                 ? init.uniform({n, n}, k)
                       : start == "orthogonal" ? init.orthogonal(n)
                                               : eye(n, init.dtype, *init.backend));
    b = parameter("b", pytorch ? init.uniform({n}, k) : init.constant({n}, 0));
    if (two) b2 = parameter("b2", pytorch ? init.uniform({n}, k) : init.constant({n}, 0));
    if (norm) {
      g = parameter("g", init.constant({n}, 1));
      beta = parameter("beta", init.constant({n}, 0));
    }
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    const Tensor u = b2.defined() ? linear(x, U, b) + b2 : linear(x, U, b);
    const Tensor a = u + linear(h, W);  // h' = f(W h + U x + b), or f(LN(W h + U x + b))
    return {activate(f_, g.defined() ? layer_norm(a, g, beta) : a)};
  }
  Tensor recurrent_matrix() const override { return W; }

 private:
  std::string f_;
  Tensor U, W, b, b2, g, beta;
};

CellType type(const std::string& name, const std::string& help, const std::string& source,
              const std::string& activation, const std::string& biases, const std::string& norm,
              const std::string& start) {
  using enum Setting::Kind;
  return {name,
          help,
          source,
          "n i + n^2 + biases n + 2 n [norm=layer]",
          {{"activation", choice, activation, "f in h' = f(W h + U x + b)", activation_names()},
           {"biases", choice, biases, "bias vectors: 1, or PyTorch's 2", {"1", "2"}},
           {"norm", choice, norm, "layer normalisation of W h + U x + b", {"none", "layer"}},
           {"init",
            choice,
            start,
            "initialisation of W: uniform as in PyTorch, identity with small U (IRNN), identity or random orthogonal "
            "with Glorot normal U",
            {"pytorch", "irnn", "identity", "orthogonal"}}},
          [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
            return std::make_unique<Rnn>(i, n, s, init);
          }};
}

REEL_CELL(type("rnn", "vanilla RNN", "Elman 1990", "tanh", "2", "none", "pytorch"))
REEL_CELL(type("irnn", "ReLU RNN with identity initialisation", "Le et al. 2015", "relu", "1", "none", "irnn"))
REEL_CELL(type("rnn-id", "IRNN with layer normalisation", "Chandar et al. 2019, a baseline", "relu", "1", "layer",
               "identity"))
REEL_CELL(type("rnn-orth", "RNN with orthogonal initialisation and layer normalisation",
               "Chandar et al. 2019, a baseline", "relu", "1", "layer", "orthogonal"))

}  // namespace
}  // namespace reel
