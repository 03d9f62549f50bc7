// Building blocks of the spectral ops and their derivatives.
#pragma once
#include "ops/matrix.h"

namespace reel {

struct GapOptions {
  const char* subject = "reciprocal_gaps";  // the subject of warnings
  bool sums = false;                        // 1 / (w_j + w_i) instead
  bool diagonal = false;                    // do zeros on the diagonal cause a warning?
  bool operator==(const GapOptions&) const = default;
};
/// 1 / (w_j - w_i) at [..., i, j]: [..., n] -> [..., n, n]; 0 on the diagonal, and where the difference is at most
/// 10 n epsilon max|w|, with a warning.
Tensor reciprocal_gaps(Arg w, const GapOptions& options = {});
/// The phase factors [..., 1, n] that bring the columns of complex V [..., m, n] into the gauge, given the indices
/// [..., n] of their largest components. They are 1 for vectors from a backend; what matters is their derivative.
Tensor gauge(const Tensor& V, const Tensor& largest);

}  // namespace reel
