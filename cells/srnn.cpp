// Shuffling RNN (SRNN paper, section 3): a step only applies a cyclic shift P and a ReLU to the state; all learning is
// in beta, a function of the input alone.
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class Srnn final : public Cell {
 public:
  Srnn(std::int64_t d, std::int64_t n, const Settings& s, Init& init)
      : Cell(d, n, init), activation_(s.choice("activation")), gated_(s.choice("gate") == "on") {
    const std::int64_t width = s.integer("width", 1), layers = s.integer("layers", 1, 1000);
    for (std::int64_t l = 1; l <= layers; ++l)
      f_.push_back(layer(fmt::format("f{}", l), l == 1 ? d : width, width, init));
    f_.push_back(layer("fo", width, n, init));
    if (gated_) g_ = layer("g", d, n, init);
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {relu(roll(state[0], 1) + beta(x))};  // h' = ReLU(P h + beta(x)), (P h)_j = h_{j-1}
  }
  std::int64_t shift() const override { return 1; }
  Tensor recurrent_matrix() const override { return roll(eye(hidden, dtype(), device()), 1, 0); }

 private:
  struct Layer {
    Tensor W, b;
    Tensor operator()(const Tensor& x) const { return linear(x, W, b); }
  };
  Layer layer(const std::string& name, std::int64_t in, std::int64_t out, Init& init) {
    const double k = 1 / std::sqrt(static_cast<double>(in));  // PyTorch Linear's initialisation
    return {parameter(name + ".W", init.uniform({out, in}, k)), parameter(name + ".b", init.uniform({out}, k))};
  }
  /// beta(x) = f_r(x) * sigmoid(W_g x + b_g), where f_r has hidden layers with an activation and a last affine layer.
  Tensor beta(const Tensor& x) const {
    Tensor y = x;
    for (std::size_t l = 0; l + 1 < f_.size(); ++l) y = activate(activation_, f_[l](y));
    y = f_.back()(y);
    return gated_ ? y * sigmoid(g_(x)) : y;
  }

  std::string activation_;
  bool gated_;
  std::vector<Layer> f_;
  Layer g_;
};

REEL_CELL({"srnn",
           "shuffling RNN",
           "Rotman and Wolf 2021, section 3",
           "f (i + 1) + (layers - 1) (f^2 + f) + n (f + 1) + n (i + 1) [gate=on], f = width",
           {{"width", Setting::Kind::integer, "8", "units per hidden layer of beta's network", {}},
            {"layers", Setting::Kind::integer, "1", "number of hidden layers of beta's network", {}},
            {"gate", Setting::Kind::choice, "on", "multiply beta by a gate of the input", {"on", "off"}},
            {"activation", Setting::Kind::choice, "relu", "activation of the hidden layers of beta's network",
             activation_names()}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Srnn>(i, n, s, init);
           },
           [](const Settings& s) { return s.integer("width", 1); }})

}  // namespace
}  // namespace reel
