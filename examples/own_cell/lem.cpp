// Long Expressive Memory (Rusch, Mishra, Erichson and Mahoney 2022): two states, each with a time step that is learnt.
//   dt1 = dt sigmoid(W1 y + V1 x + b1)      z' = (1 - dt1) z + dt1 tanh(Wz y  + Vz x + bz)
//   dt2 = dt sigmoid(W2 y + V2 x + b2)      y' = (1 - dt2) y + dt2 tanh(Wy z' + Vy x + by)
#include <reel/reel.h>

#include <cmath>

namespace {

using namespace reel;

class Lem final : public Cell {
 public:
  Lem(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), dt_(s.real("dt", 0, 1)) {
    const double k = 1 / std::sqrt(static_cast<double>(n));
    for (Gate* g : {&g1_, &g2_, &z_, &y_}) {
      const std::string name = g == &g1_ ? "1" : g == &g2_ ? "2" : g == &z_ ? "z" : "y";
      g->W = parameter("W" + name, init.uniform({n, n}, k));
      g->V = parameter("V" + name, init.uniform({n, i}, k));
      g->b = parameter("b" + name, init.uniform({n}, k));
    }
  }
  std::vector<State> states() const override { return {{"y", hidden}, {"z", hidden}}; }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor &y = state[0], &z = state[1];
    const Tensor dt1 = dt_ * sigmoid(g1_(y, x)), dt2 = dt_ * sigmoid(g2_(y, x));
    const Tensor next = (1 - dt1) * z + dt1 * tanh(z_(y, x));
    return {(1 - dt2) * y + dt2 * tanh(y_(next, x)), next};
  }

 private:
  struct Gate {
    Tensor W, V, b;
    Tensor operator()(const Tensor& state, const Tensor& x) const { return linear(x, V, b) + linear(state, W); }
  };
  double dt_;
  Gate g1_, g2_, z_, y_;
};

// From here on every model can be made with it: ModelOptions{.cell = "lem"}.
REEL_CELL({"lem",
           "long expressive memory",
           "Rusch et al. 2022",
           "4 (n i + n^2 + n)",
           {{"dt", Setting::Kind::real, "1", "longest time step", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Lem>(i, n, s, init);
           }})

}  // namespace
