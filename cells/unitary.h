// The unitary matrix of uRNN (Arjovsky et al. 2016), W = D_3 R_2 F^-1 D_2 Pi R_1 F D_1, which full-capacity uRNN starts
// from: phases D, reflections R about complex vectors, a permutation Pi and Fourier transforms, in O(n log n).
#pragma once
#include "cells/cell.h"

namespace reel {

struct RestrictedUnitary {
  Tensor omega_1, omega_2, omega_3;  // [n], phases
  Tensor v_1, v_2;                   // [n], complex
  Tensor perm;                       // [n], i32: (Pi z)_j = z_perm(j)

  /// W z for rows z [..., n].
  Tensor operator()(const Tensor& z) const {
    Tensor y = fft(phase(omega_1) * z, {.norm = FftNorm::ortho});
    y = index_select(reflect(v_1, y), -1, perm);
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

/// The start of uRNN: angles uniform in +-pi, Glorot uniform vectors, a random permutation.
inline RestrictedUnitary restricted_unitary(std::int64_t n, Init& init) {
  constexpr double pi = 3.14159265358979323846;
  const double bound = std::sqrt(6.0 / static_cast<double>(2 + 2 * n));
  RestrictedUnitary W;
  for (Tensor* omega : {&W.omega_1, &W.omega_2, &W.omega_3}) *omega = init.uniform({n}, pi);
  for (Tensor* v : {&W.v_1, &W.v_2}) *v = init.complex_uniform({n}, bound);
  W.perm = init.order(n);
  return W;
}

/// [re z; im z], what the read-outs of uRNN see.
inline Tensor both_parts(const Tensor& z) { return concat({real(z), imag(z)}, -1); }

}  // namespace reel
