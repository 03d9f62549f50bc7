// Unitary RNN (Arjovsky, Shah and Bengio 2016): z' = modReLU(W z + V x; b) with a complex state.
#include "cells/unitary.h"

namespace reel {
namespace {

class Urnn final : public UnitaryRnn {
 public:
  Urnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : UnitaryRnn(i, n, s, init), W(restricted_unitary(n, init, s.choice("init") == "srnn_urnn")) {
    parameter("omega_1", W.omega_1);
    parameter("omega_2", W.omega_2);
    parameter("omega_3", W.omega_3);
    parameter("v_1", W.v_1);
    parameter("v_2", W.v_2);
    name_inputs(init, s.choice("init") == "srnn_urnn");
    fixed("perm", W.perm);
    name_initial(s, init);
  }

  Tensors step(const Tensors& state, const Tensor& x) const override { return next(W(state[0]), x); }
  Tensor recurrent_matrix() const override { return transpose(W(eye(hidden, complex_of(dtype()), device()))); }

 private:
  RestrictedUnitary W;
};

using enum Setting::Kind;
REEL_CELL({"urnn",
           "unitary RNN: phases, reflections and Fourier transforms",
           "Arjovsky, Shah and Bengio 2016; W as in Jing et al. 2019, equation 2.8",
           "2 n i + 8 n + 2 n [initial=trained]",
           {{"modrelu", choice, "urnn", "implementation whose modReLU constants are used", modrelu_names()},
            {"init",
             choice,
             "urnn",
             "implementation whose initial values are used; srnn_urnn: b = 0, v uniform in +-1",
             {"urnn", "srnn_urnn"}},
            {"initial", choice, "trained", "initial state", {"trained", "zero"}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Urnn>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
