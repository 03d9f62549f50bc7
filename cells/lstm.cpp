// Long short-term memory (Hochreiter and Schmidhuber 1997, with a forget gate; written as in Zaremba et al. 2014), with
// the peepholes, initialisations and normalisation of the papers' baselines.
#include <cmath>

#include "cells/gate.h"

namespace reel {
namespace {

class Lstm final : public Cell {
 public:
  Lstm(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), peephole_(s.choice("peephole")) {
    const std::string& start = s.choice("init");
    const double k = 1 / std::sqrt(static_cast<double>(n));
    const bool two = s.choice("biases") == "2", normed = s.choice("norm") == "layer";
    for (Gate* g : {&i_, &f_, &g_, &o_}) {
      const std::string name = g == &i_ ? "_i" : g == &f_ ? "_f" : g == &g_ ? "_g" : "_o";
      const auto weight = [&](std::int64_t in, bool recurrent) {
        if (start == "pytorch") return init.uniform({n, in}, k);  // all uniform in +-1/sqrt(n)
        if (start == "glorot") return init.glorot_uniform({n, in});
        if (start == "tensorflow") return init.uniform({n, in}, std::sqrt(6 / static_cast<double>(i + 5 * n)));
        return recurrent ? init.orthogonal(n) : init.glorot_normal({n, in});
      };
      g->W = parameter("W" + name, weight(i, false));
      g->R = parameter("R" + name, weight(n, true));
      Tensor b = start == "pytorch" ? init.uniform({n}, k) : init.constant({n}, 0);
      if (g == &f_) b = b + s.real("forget_bias");
      g->b = parameter("b" + name, b);
      if (two) g->b2 = parameter("b2" + name, start == "pytorch" ? init.uniform({n}, k) : init.constant({n}, 0));
      const bool sees = peephole_ == "full" || (peephole_ == "output" && g == &o_);
      if (sees) g->V = parameter("V" + name, weight(n, true));
      if (peephole_ == "diagonal" && g != &g_) g->p = parameter("p" + name, init.uniform({n}, 0.0, 1.0));
      if (normed) g->norm = norm(name, init);
    }
    if (normed) c_norm_ = norm("_c", init);
    if (s.choice("initial") == "trained") {
      h_0 = parameter("h_0", init.constant({n}, 0));
      c_0 = parameter("c_0", init.constant({n}, 0));
    }
    if (const double longest = s.real("chrono", 0, 1 << 24); longest > 0)
      chrono(longest, s.choice("chrono_draw"), init);
  }
  std::vector<State> states() const override { return {{"h", hidden}, {"c", hidden}}; }
  Tensors initial(std::int64_t batch) const override {
    if (!h_0.defined()) return Cell::initial(batch);
    return {expand(h_0, {batch, hidden}), expand(c_0, {batch, hidden})};
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor &h = state[0], &c = state[1];
    const bool full = peephole_ == "full";
    const Tensor i = sigmoid(i_(x, h, c));
    const Tensor f = sigmoid(f_(x, h, c));
    const Tensor g = tanh(g_(x, h, c));
    const Tensor next = f * c + i * g;
    const Tensor o = sigmoid(o_(x, h, full ? c : next));  // the output gate's peepholes see the new cell
    const Tensor carried = c_norm_(next);
    return {o * tanh(carried), carried};
  }

 private:
  struct Gate {
    Tensor W, R, b, b2, V, p;
    Norm norm;
    Tensor operator()(const Tensor& x, const Tensor& h, const Tensor& c) const {  // W x + R h + b, plus V c or p * c
      const Tensor u = b2.defined() ? linear(x, W, b) + b2 : linear(x, W, b);
      const Tensor a = u + linear(h, R);
      return norm(V.defined() ? a + linear(c, V) : p.defined() ? a + p * c : a);
    }
  };
  Norm norm(const std::string& name, Init& init) {
    return {parameter("g" + name, init.constant({hidden}, 1)), parameter("beta" + name, init.constant({hidden}, 0))};
  }
  /// Chrono initialisation (Tallec and Ollivier 2018): b_f = log of random times up to `longest`, b_i = -b_f, other
  /// biases 0.
  void chrono(double longest, const std::string& draw, Init& init) {
    Tensor times = init.uniform({hidden}, 1.0, std::max(longest - 1, 1.0));
    if (draw == "whole") times = floor(init.uniform({hidden}, 1.0, std::floor(longest) + 1));
    const Tensor b_f = log(times), zero = init.constant({hidden}, 0);
    for (Gate* g : {&i_, &f_, &g_, &o_}) {
      g->b.assign(g == &f_ ? b_f : g == &i_ ? -b_f : zero);
      if (g->b2.defined()) g->b2.assign(zero);
    }
  }

  std::string peephole_;
  Gate i_, f_, g_, o_;
  Tensor h_0, c_0;
  Norm c_norm_;  // the carried cell state is the normalised one
};

using enum Setting::Kind;
REEL_CELL(
    {"lstm",
     "long short-term memory",
     "Hochreiter and Schmidhuber 1997, written as in Zaremba et al. 2014",
     "4 (n i + n^2 + biases n) + 3 n [peephole=diagonal] + n^2 [peephole=output] + 4 n^2 [peephole=full] + 10 n "
     "[norm=layer] + 2 n [initial=trained]",
     {{"biases", choice, "2", "bias vectors per gate: 1, or PyTorch's 2", {"1", "2"}},
      {"forget_bias", real, "0", "added to the initial bias of the forget gate", {}, "chrono=0"},
      {"peephole",
       choice,
       "none",
       "peephole connections: vectors (Graves 2013), a matrix to the output gate (uRNN's baseline), or matrices "
       "to all gates",
       {"none", "diagonal", "output", "full"}},
      {"norm", choice, "none", "layer normalisation of gates and cell state", {"none", "layer"}},
      {"init",
       choice,
       "pytorch",
       "initialisation: uniform in +-1/sqrt(n), Glorot uniform, Glorot uniform of one joint matrix "
       "[4n, i + n] (TensorFlow's BasicLSTMCell), or Glorot normal with orthogonal recurrent matrices (NRU's "
       "baseline)",
       {"pytorch", "glorot", "tensorflow", "orthogonal"}},
      {"initial", choice, "zero", "initial state", {"zero", "trained"}},
      {"chrono", real, "0", "chrono initialisation of the biases: longest time; 0: off", {}},
      {"chrono_draw", choice, "real", "chrono initialisation: real or integer times", {"real", "whole"}, "chrono!=0"}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Lstm>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
