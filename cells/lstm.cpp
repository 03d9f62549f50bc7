// Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gate; Zaremba et al. 2014 write it so).
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class Lstm final : public Cell {
 public:
  Lstm(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init) {
    const double k = 1 / std::sqrt(static_cast<double>(n));  // PyTorch's start: all uniform in +-1/sqrt(n)
    const bool two = s.choice("biases") == "2";
    for (Gate* g : {&i_, &f_, &g_, &o_}) {
      const std::string name = g == &i_ ? "_i" : g == &f_ ? "_f" : g == &g_ ? "_g" : "_o";
      g->W = parameter("W" + name, init.uniform({n, i}, k));
      g->R = parameter("R" + name, init.uniform({n, n}, k));
      Tensor b = init.uniform({n}, k);
      if (g == &f_) b = b + s.real("forget_bias");
      g->b = parameter("b" + name, b);
      if (two) g->b2 = parameter("b2" + name, init.uniform({n}, k));
    }
  }
  std::vector<std::string> states() const override { return {"h", "c"}; }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor &h = state[0], &c = state[1];
    const Tensor i = sigmoid(i_(x, h));
    const Tensor f = sigmoid(f_(x, h));
    const Tensor g = tanh(g_(x, h));
    const Tensor o = sigmoid(o_(x, h));
    const Tensor next = f * c + i * g;
    return {o * tanh(next), next};
  }

 private:
  struct Gate {
    Tensor W, R, b, b2;
    Tensor operator()(const Tensor& x, const Tensor& h) const {  // W x + R h + b
      const Tensor u = b2.defined() ? linear(x, W, b) + b2 : linear(x, W, b);
      return u + linear(h, R);
    }
  };
  Gate i_, f_, g_, o_;
};

REEL_CELL({"lstm",
           "long short-term memory",
           {{"biases", Setting::Kind::choice, "2", "bias vectors a gate: 1, or PyTorch's 2", {"1", "2"}},
            {"forget_bias", Setting::Kind::real, "0", "added to the forget gate's bias at the start", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Lstm>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
