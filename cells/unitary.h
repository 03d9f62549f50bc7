// The unitary matrix of uRNN (Arjovsky et al. 2016), W = D_3 R_2 F^-1 D_2 Pi R_1 F D_1: phases D, reflections R about
// complex vectors, a permutation Pi and Fourier transforms, in O(n log n). It is also the initial W of full-capacity
// uRNN.
#pragma once
#include <cmath>

#include "cells/modrelu.h"

namespace reel {

struct RestrictedUnitary {
  Tensor omega_1, omega_2, omega_3;  // [n], phases
  Tensor v_1, v_2;                   // [n], complex
  Tensor perm;                       // [n], i32: (Pi z)_j = z_perm(j)

  /// W z for rows z [..., n].
  Tensor operator()(const Tensor& z) const {
    Tensor y = index_select(fft(phase(omega_1) * z, {.norm = FftNorm::ortho}), -1, perm);
    y = reflect(index_select(v_1, -1, perm), y);  // Pi R_1 = R Pi, R about Pi v_1: the gradient needs Pi F D_1 z alone
    y = ifft(phase(omega_2) * y, {.norm = FftNorm::ortho});
    return phase(omega_3) * reflect(v_2, y);
  }

 private:
  static Tensor phase(const Tensor& omega) { return polar(1.0, omega); }
  /// z - 2 v (v^H z) / |v|^2
  static Tensor reflect(const Tensor& v, const Tensor& z) {
    const Tensor along = matmul(z, reshape(conj(v), {-1, 1}));  // [..., 1]
    return z - along * (2 / sum(square(abs(v))) * v);
  }
};

/// uRNN's initialisation: angles uniform in +-pi, Glorot uniform vectors, a random permutation. SRNN's port of it draws
/// the vectors uniform in +-1.
inline RestrictedUnitary restricted_unitary(std::int64_t n, Init& init, bool srnn_port = false) {
  constexpr double pi = 3.14159265358979323846;
  const double bound = srnn_port ? 1 : std::sqrt(6.0 / static_cast<double>(2 + 2 * n));
  RestrictedUnitary W;
  for (Tensor* omega : {&W.omega_1, &W.omega_2, &W.omega_3}) *omega = init.uniform({n}, pi);
  for (Tensor* v : {&W.v_1, &W.v_2}) *v = init.complex_uniform({n}, bound);
  W.perm = init.order(n);
  return W;
}

/// z' = modReLU(W z + V x; b) with a complex state and any W; the read-out sees [re z; im z].
class UnitaryRnn : public Cell {
 public:
  std::vector<State> states() const override { return {{"z", hidden, true}}; }
  Tensors initial(std::int64_t batch) const override {
    return z_0.defined() ? Tensors{expand(z_0, {batch, hidden})} : Cell::initial(batch);
  }
  Tensor output(const Tensors& state) const override { return concat({real(state[0]), imag(state[0])}, -1); }
  std::int64_t outputs() const override { return 2 * hidden; }

 protected:
  UnitaryRnn(std::int64_t i, std::int64_t n, const Settings& s, const Init& init)
      : Cell(i, n, init), modrelu_(modrelu_options(s.choice("modrelu"))) {}
  void name_inputs(Init& init, bool zero_bias = false) {
    V = parameter("V", init.complex_uniform({hidden, input}, std::sqrt(6 / static_cast<double>(input + 2 * hidden))));
    b = parameter("b", zero_bias ? init.constant({hidden}, 0) : init.uniform({hidden}, 0.01));
  }
  void name_initial(const Settings& s, Init& init) {
    if (s.choice("initial") == "trained")
      z_0 = parameter("z_0", init.complex_uniform({hidden}, std::sqrt(3 / static_cast<double>(2 * hidden))));
  }
  Tensors next(const Tensor& Wz, const Tensor& x) const { return {modrelu(Wz + linear_of_real(x, V), b, modrelu_)}; }

 private:
  ModReluOptions modrelu_;
  Tensor V, b, z_0;
};

}  // namespace reel
