// Statistical recurrent unit (Oliva et al. 2017): moving averages of statistics at several rates. Not the "simple
// recurrent unit" of the same abbreviation.
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

constexpr double rates[] = {0, 0.5, 0.9, 0.99, 0.999};

class Sru final : public Cell {
 public:
  Sru(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), p_(s.integer("p", 1)) {
    const std::int64_t q = s.integer("q", 0) > 0 ? s.integer("q", 0) : std::max<std::int64_t>(1, n / 4);
    const auto layer = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      return Layer{parameter("W_" + name, init.glorot_uniform({out, in}, std::sqrt(2.0))),
                   parameter("b_" + name, init.constant({out}, 0))};
    };
    r_ = layer("r", width(), q);
    phi_ = layer("phi", i + q, p_);
    o_ = layer("o", width(), n);
    std::vector<double> alpha;
    for (double rate : rates) alpha.insert(alpha.end(), static_cast<std::size_t>(p_), rate);
    alpha_ = cast(Tensor::from(std::span<const double>(alpha), {width()}, *init.backend), init.dtype);
  }
  std::vector<State> states() const override { return {{"mu", width()}}; }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& mu = state[0];  // [B, 5 p]: p statistics at each rate
    const Tensor r = relu(r_(mu));
    // phi = ReLU(W_phi [x; r] + b_phi). The product with x is separate, so that scan can hoist it.
    const Tensor W_x = slice(phi_.W, 1, 0, input), W_r = slice(phi_.W, 1, input, phi_.W.dim(1));
    const Tensor phi = relu(linear(x, W_x, phi_.b) + linear(r, W_r));
    return {alpha_ * mu + (1 - alpha_) * concat(Tensors(std::size(rates), phi), -1)};
  }
  Tensor output(const Tensors& state) const override { return relu(o_(state[0])); }

 private:
  struct Layer {
    Tensor W, b;
    Tensor operator()(const Tensor& x) const { return linear(x, W, b); }
  };
  std::int64_t width() const { return p_ * static_cast<std::int64_t>(std::size(rates)); }

  std::int64_t p_;
  Layer r_, phi_, o_;
  Tensor alpha_;
};

using enum Setting::Kind;
REEL_CELL({"sru",
           "statistical recurrent unit: moving averages at five rates",
           "Oliva et al. 2017",
           "(5 p + 1) (r + n) + (i + r + 1) p, r = q or max(1, floor(n/4))",
           {{"p", integer, "60", "number of statistics", {}},
            {"q", integer, "0", "number of units that read the averages; 0: a quarter of the hidden size", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Sru>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
