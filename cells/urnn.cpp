// Unitary RNN (Arjovsky, Shah and Bengio 2016): z' = modReLU(W z + V x; b) with a complex state.
#include <cmath>

#include "cells/modrelu.h"
#include "cells/unitary.h"

namespace reel {
namespace {

class Urnn final : public Cell {
 public:
  Urnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init), modrelu_(modrelu_options(s.choice("modrelu"))), W(restricted_unitary(n, init)) {
    parameter("omega_1", W.omega_1);
    parameter("omega_2", W.omega_2);
    parameter("omega_3", W.omega_3);
    parameter("v_1", W.v_1);
    parameter("v_2", W.v_2);
    V = parameter("V", init.complex_uniform({n, i}, std::sqrt(6 / static_cast<double>(i + 2 * n))));
    b = parameter("b", init.uniform({n}, 0.01));
    fixed("perm", W.perm);
    if (s.choice("initial") == "trained")
      z_0 = parameter("z_0", init.complex_uniform({n}, std::sqrt(3 / static_cast<double>(2 * n))));
  }
  std::vector<State> states() const override { return {{"z", hidden, true}}; }
  Tensors initial(std::int64_t batch) const override {
    return z_0.defined() ? Tensors{expand(z_0, {batch, hidden})} : Cell::initial(batch);
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    return {modrelu(W(state[0]) + linear_of_real(x, V), b, modrelu_)};
  }
  Tensor output(const Tensors& state) const override { return both_parts(state[0]); }
  std::int64_t outputs() const override { return 2 * hidden; }

 private:
  ModReluOptions modrelu_;
  RestrictedUnitary W;
  Tensor V, b, z_0;
};

using enum Setting::Kind;
REEL_CELL({"urnn",
           "unitary RNN: phases, reflections and Fourier transforms",
           "Arjovsky, Shah and Bengio 2016; W as in Jing et al. 2019, equation 2.8",
           "2 n i + 8 n + 2 n [initial=trained]",
           {{"modrelu", choice, "urnn", "whose small numbers", modrelu_names()},
            {"initial", choice, "trained", "the first state", {"trained", "zero"}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Urnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
