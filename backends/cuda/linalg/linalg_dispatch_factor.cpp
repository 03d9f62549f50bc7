// Dispatch of factorizations: lu, cholesky, qr, determinant, pinv, polar_factor; falls back to the CPU where cuSOLVER
// fails.
#include "backends/cuda/cuda.h"
#include "backends/cuda/linalg/matrices.h"
#include "backends/shared/cpu_fallback.h"

namespace reel::cuda {

void Cuda::lu(const LuArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_lu(matrices(), a))
    return launched("lu", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::lu, a);
}

void Cuda::cholesky(const CholeskyArgs& a) {
  if (a.n == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && cusolver_cholesky(matrices(), a)) return launched("cholesky", {a.batch, a.n});
  cpu_fallback(*this, &Backend::cholesky, a);
}

void Cuda::qr(const QrArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_qr(matrices(), a))
    return launched("qr", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::qr, a);
}

void Cuda::determinant(const DeterminantArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.n, a.n) && cusolver_determinant(matrices(), a))
    return launched("determinant", {a.batch, a.n});
  cpu_fallback(*this, &Backend::determinant, a);
}

void Cuda::pinv(const PinvArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_pinv(matrices(), a))
    return launched("pinv", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::pinv, a);
}

void Cuda::polar_factor(const PolarFactorArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_polar_factor(matrices(), a))
    return launched("polar_factor", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::polar_factor, a);
}

}  // namespace reel::cuda
