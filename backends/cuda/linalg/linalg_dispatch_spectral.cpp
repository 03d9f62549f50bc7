// Dispatch of eigenvalues, singular values and Schur forms: schur and spectral_radius run on the CPU; the others fall
// back to it if cuSOLVER fails, and for small matrices.
#include "backends/cuda/linalg/host_kernel.h"
#include "backends/cuda/linalg/matrices.h"

namespace reel::cuda {

std::int64_t Cuda::eig(const EigArgs& a) {
  // Callers rely on LAPACK's order of a small matrix's eigenvalues. For large matrices the order is arbitrary anyway.
  constexpr std::int64_t large = 300;
  if (a.n >= large && suits_solver(a.dtype, a.batch, a.n, a.n)) {
    const std::optional<std::int64_t> dependent = cusolver_eig(matrices(), a);
    launched("eig", {a.batch, a.n});
    if (dependent) return *dependent;
  }
  return cpu_fallback(*this, &Backend::eig, a);
}

void Cuda::eigh(const EighArgs& a) {
  const std::int64_t all = a.batch * a.n;
  if (all == 0) return;
  if (is_differentiable(a.dtype) && cusolver_eigh(matrices(), a)) return launched("eigh", {a.batch, a.n});
  cpu_fallback(*this, &Backend::eigh, a);
}

void Cuda::svd(const SvdArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_svd(matrices(), a))
    return launched("svd", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::svd, a);
}

void Cuda::schur(const SchurArgs& a) { run_on_host("schur", &Backend::schur, a); }

std::int64_t Cuda::spectral_radius(const SpectralRadiusArgs& a) {
  return run_on_host("spectral_radius", &Backend::spectral_radius, a);
}

}  // namespace reel::cuda
