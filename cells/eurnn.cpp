// Efficient unitary RNN (Jing et al. 2017, EUNN): h' = modReLU(W h + U x; b), W a product of plane rotations.
#include "cells/modrelu.h"
#include "cells/rotations.h"

namespace reel {
namespace {

class Eurnn final : public Cell {
 public:
  Eurnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init),
        complex_(s.choice("field") == "complex"),
        W(rotation_angles(s, n, complex_, init,
                          [&](const std::string& name, const Tensor& value) { return parameter(name, value); })) {
    U = parameter("U", complex_ ? init.complex_uniform({n, i}, 0.01) : init.uniform({n, i}, 0.01));
    b = parameter("b", init.constant({n}, 0));
  }
  std::vector<State> states() const override { return {{"h", hidden, complex_}}; }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor a = W(state[0]) + linear_of_real(x, U);
    return {modrelu(a, b, modrelu_options(complex_ ? "eunn_complex" : "eunn"))};
  }
  Tensor recurrent_matrix() const override {
    return transpose(W(eye(hidden, complex_ ? complex_of(dtype()) : dtype(), device())));
  }
  Tensor output(const Tensors& state) const override { return real(state[0]); }

 private:
  bool complex_;
  RotationAngles W;
  Tensor U, b;
};

using enum Setting::Kind;
REEL_CELL(
    {"eurnn",
     "unitary or orthogonal RNN of plane rotations, EUNN",
     "Jing et al. 2017",
     "c (a + n i) + n + n [field=complex], c = 1 + [field=complex], a = [style=fft] n log2(n)/2 + "
     "[style=tunable] capacity (n - 1)/2",
     {{"style",
       choice,
       "fft",
       "pairs of units that are rotated: at distances n/2 to 1, or neighbours",
       {"fft", "tunable"}},
      {"field", choice, "real", "real or complex rotations", {"real", "complex"}},
      {"capacity", integer, "2", "tunable: number of layers, even; n of them reach every matrix", {}, "style=tunable"}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Eurnn>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
