// What the spectral ops and their derivatives are made of.
#pragma once
#include "ops/matrix.h"

namespace reel {

struct GapOptions {
  const char* subject = "reciprocal_gaps";  // who warns
  bool sums = false;                        // 1 / (w_j + w_i) instead
  bool diagonal = false;                    // does the diagonal matter? (for warnings)
};
/// 1 / (w_j - w_i) at [..., i, j]: [..., n] -> [..., n, n]; 0 on the diagonal, and where the difference is at most
/// 10 n epsilon max|w|, with a warning.
Tensor reciprocal_gaps(Arg w, const GapOptions& options = {});
/// What turns the columns of complex V [..., m, n] into the gauge: [..., 1, n] of modulus 1; the places of the largest
/// components are given: [..., n]. It is 1 for V as they come from a backend, and there for its derivative.
Tensor gauge(const Tensor& V, const Tensor& largest);

}  // namespace reel
