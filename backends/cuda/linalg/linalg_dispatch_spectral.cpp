// Dispatch of eigenvalues, singular values and Schur forms: schur and spectral_radius run on the CPU; the others fall
// back to it if cuSOLVER fails, and for small matrices.
#include <algorithm>

#include "backends/cuda/cuda.h"
#include "backends/cuda/linalg/matrices.h"
#include "backends/cuda/runtime/cpu_fallback.h"

namespace reel::cuda {

std::int64_t Cuda::eig(const EigArgs& a) {
  const std::int64_t all = a.batch * a.n;
  const DType complex = complex_of(a.dtype);
  // Callers rely on LAPACK's order of a small matrix's eigenvalues. For large matrices the order is arbitrary anyway.
  constexpr std::int64_t large = 128;
  if (a.n >= large && suits_solver(a.dtype, a.batch, a.n, a.n)) {
    const std::optional<std::int64_t> dependent = cusolver_eig(matrices(), a);
    launched("eig", {a.batch, a.n});
    if (dependent) return *dependent;
  }
  return cpu_fallback(*this, &Backend::eig, a, Part{&EigArgs::a, a.dtype, all * a.n},
                      Part{&EigArgs::values, complex, all}, Part{&EigArgs::vectors, complex, all * a.n},
                      Part{&EigArgs::largest, DType::i32, all}, Part{&EigArgs::independent, DType::boolean, a.batch});
}

void Cuda::eigh(const EighArgs& a) {
  const std::int64_t all = a.batch * a.n;
  if (all == 0) return;
  if (is_differentiable(a.dtype) && cusolver_eigh(matrices(), a)) return launched("eigh", {a.batch, a.n});
  cpu_fallback(*this, &Backend::eigh, a, Part{&EighArgs::a, a.dtype, all * a.n},
               Part{&EighArgs::values, real_of(a.dtype), all}, Part{&EighArgs::vectors, a.dtype, all * a.n},
               Part{&EighArgs::largest, DType::i32, all});
}

void Cuda::svd(const SvdArgs& a) {
  const std::int64_t k = std::min(a.m, a.n);
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_svd(matrices(), a))
    return launched("svd", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::svd, a, Part{&SvdArgs::a, a.dtype, a.batch * a.m * a.n},
               Part{&SvdArgs::u, a.dtype, a.batch * a.m * k}, Part{&SvdArgs::s, real_of(a.dtype), a.batch * k},
               Part{&SvdArgs::vh, a.dtype, a.batch * k * a.n}, Part{&SvdArgs::largest, DType::i32, a.batch * k});
}

void Cuda::schur(const SchurArgs& a) {
  const std::int64_t all = a.batch * a.n * a.n;
  cpu_fallback(*this, &Backend::schur, a, Part{&SchurArgs::a, a.dtype, all}, Part{&SchurArgs::q, a.dtype, all},
               Part{&SchurArgs::t, a.dtype, all});
}

std::int64_t Cuda::spectral_radius(const SpectralRadiusArgs& a) {
  const DType complex = complex_of(a.dtype);
  return cpu_fallback(*this, &Backend::spectral_radius, a, Part{&SpectralRadiusArgs::a, a.dtype, a.batch * a.n * a.n},
                      Part{&SpectralRadiusArgs::radius, real_of(a.dtype), a.batch},
                      Part{&SpectralRadiusArgs::value, complex, a.batch},
                      Part{&SpectralRadiusArgs::right, complex, a.batch * a.n},
                      Part{&SpectralRadiusArgs::left, complex, a.batch * a.n});
}

}  // namespace reel::cuda
