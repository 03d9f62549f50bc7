// Gated orthogonal recurrent unit (Jing et al. 2019): a GRU whose candidate multiplies the state by an orthogonal Q.
#include <cmath>

#include "cells/modrelu.h"
#include "cells/rotations.h"

namespace reel {
namespace {

class Goru final : public Cell {
 public:
  Goru(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), f_(s.choice("activation")) {
    const auto gate = [&](const std::string& name, bool on, const Tensor& start) {
      Gate g;
      if (on) {
        g.U = parameter("U" + name, init.uniform({n, i}, 0.01));
        g.W = parameter("W" + name, init.uniform({n, n}, 0.01));
      }
      g.b = parameter("b" + name, start);
      return g;
    };
    z_ = gate("_z", s.on("update"), init.uniform({n}, std::sqrt(3 / static_cast<double>(n))));
    r_ = gate("_r", s.on("reset"), init.constant({n}, 2));
    U_c = parameter("U_c", init.uniform({n, i}, 0.01));
    b_c = parameter("b_c", init.constant({n}, 0.01));
    if (s.choice("style") == "householder") {
      const std::int64_t m = s.integer("reflections", 1);
      if (m >= n)
        throw SettingError(s.path("reflections"), fmt::format("fewer than the {} units expected, got {}", n, m));
      H = parameter("H", init.normal({n, m}, 1), "", n * m - m * (m - 1) / 2);
    } else {
      Q_.emplace(rotation_angles(s, n, false, init,
                                 [&](const std::string& name, const Tensor& value) { return parameter(name, value); }));
    }
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    const Tensor z = sigmoid(z_(x, h));  // (3.2)
    const Tensor r = sigmoid(r_(x, h));  // (3.3)
    const Tensor Qh = Q_ ? (*Q_)(h) : householder_apply(h, tril(H));
    const Tensor a = r * Qh + linear(x, U_c);
    const Tensor c = f_ == "modrelu" ? modrelu(a, b_c, modrelu_options("goru")) : activate(f_, a + b_c);
    return {z * h + (1 - z) * c};  // (3.1)
  }

 private:
  struct Gate {  // W h + U x + b; with the gate off just b, a trained constant
    Tensor U, W, b;
    Tensor operator()(const Tensor& x, const Tensor& h) const {
      return U.defined() ? linear(h, W) + linear(x, U, b) : b;
    }
  };
  std::string f_;
  Gate z_, r_;
  Tensor U_c, b_c, H;
  std::optional<RotationAngles> Q_;
};

using enum Setting::Kind;
REEL_CELL({"goru",
           "gated orthogonal recurrent unit",
           "Jing et al. 2019, equations 3.1-3.3",
           "n i + 3 n + (n i + n^2) ([update=on] + [reset=on]) + a, a = [style=fft] n log2(n)/2 + [style=tunable] "
           "capacity (n - 1)/2 + [style=householder] (n m - m (m - 1)/2), m = reflections",
           {{"style", choice, "fft", "parametrisation of Q", {"fft", "tunable", "householder"}},
            {"capacity", integer, "2", "tunable: number of layers, even", {}, "style=tunable"},
            {"reflections", integer, "4", "householder: number of reflections", {}, "style=householder"},
            {"reset", choice, "on", "reset gate; off: a trained constant", {"on", "off"}},
            {"update", choice, "on", "update gate; off: a trained constant", {"on", "off"}},
            {"activation", choice, "modrelu", "activation of the candidate", {"modrelu", "tanh", "relu"}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Goru>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
