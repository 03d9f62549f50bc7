// Dispatch of factorizations: lu, cholesky, qr, determinant, pinv, polar_factor; falls back to the CPU where cuSOLVER
// fails.
#include <algorithm>

#include "backends/cuda/cuda.h"
#include "backends/cuda/linalg/matrices.h"
#include "backends/cuda/runtime/cpu_fallback.h"

namespace reel::cuda {

void Cuda::lu(const LuArgs& a) {
  const std::int64_t r = std::min(a.m, a.n);
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_lu(matrices(), a))
    return launched("lu", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::lu, a, Part{&LuArgs::a, a.dtype, a.batch * a.m * a.n},
               Part{&LuArgs::p, a.dtype, a.batch * a.m * a.m}, Part{&LuArgs::l, a.dtype, a.batch * a.m * r},
               Part{&LuArgs::u, a.dtype, a.batch * r * a.n});
}

void Cuda::cholesky(const CholeskyArgs& a) {
  if (a.n == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && cusolver_cholesky(matrices(), a)) return launched("cholesky", {a.batch, a.n});
  const std::int64_t all = a.batch * a.n * a.n;
  cpu_fallback(*this, &Backend::cholesky, a, Part{&CholeskyArgs::a, a.dtype, all},
               Part{&CholeskyArgs::l, a.dtype, all});
}

void Cuda::qr(const QrArgs& a) {
  const std::int64_t r = std::min(a.m, a.n);
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_qr(matrices(), a))
    return launched("qr", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::qr, a, Part{&QrArgs::a, a.dtype, a.batch * a.m * a.n},
               Part{&QrArgs::q, a.dtype, a.batch * a.m * r}, Part{&QrArgs::r, a.dtype, a.batch * r * a.n});
}

void Cuda::determinant(const DeterminantArgs& a) {
  if (suits_solver(a.dtype, a.batch, a.n, a.n) && cusolver_determinant(matrices(), a))
    return launched("determinant", {a.batch, a.n});
  cpu_fallback(*this, &Backend::determinant, a, Part{&DeterminantArgs::a, a.dtype, a.batch * a.n * a.n},
               Part{&DeterminantArgs::det, a.dtype, a.batch}, Part{&DeterminantArgs::sign, a.dtype, a.batch},
               Part{&DeterminantArgs::log_abs, real_of(a.dtype), a.batch});
}

void Cuda::pinv(const PinvArgs& a) {
  const std::int64_t all = a.batch * a.m * a.n;
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_pinv(matrices(), a))
    return launched("pinv", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::pinv, a, Part{&PinvArgs::a, a.dtype, all}, Part{&PinvArgs::out, a.dtype, all});
}

void Cuda::polar_factor(const PolarFactorArgs& a) {
  const std::int64_t all = a.batch * a.m * a.n;
  if (suits_solver(a.dtype, a.batch, a.m, a.n) && cusolver_polar_factor(matrices(), a))
    return launched("polar_factor", {a.batch, a.m, a.n});
  cpu_fallback(*this, &Backend::polar_factor, a, Part{&PolarFactorArgs::a, a.dtype, all},
               Part{&PolarFactorArgs::out, a.dtype, all});
}

}  // namespace reel::cuda
