// Factorisations: lu, qr, determinant, pinv, polar through the CPU, and cholesky where it fails.
#include "backends/cuda/by_cpu.h"
#include "backends/cuda/cuda.h"

namespace reel::cuda {

namespace {
/// Bytes of n elements.
std::size_t size(DType dtype, std::int64_t n) { return static_cast<std::size_t>(n) * size_of(dtype); }
}  // namespace

void Cuda::lu(const LuArgs& a) {
  ByCpu host(*this);
  const std::int64_t r = std::min(a.m, a.n);
  LuArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch * a.m * a.n));
  b.p = host.out(a.p, size(a.dtype, a.batch * a.m * a.m));
  b.l = host.out(a.l, size(a.dtype, a.batch * a.m * r));
  b.u = host.out(a.u, size(a.dtype, a.batch * r * a.n));
  host.cpu().lu(b);
  host.finish();
}

void Cuda::cholesky(const CholeskyArgs& a) {
  if (a.n == 0 || a.batch == 0) return;
  not_recorded(checked_on_host);
  if (is_differentiable(a.dtype) && cholesky_here(a)) return;
  ByCpu host(*this);
  CholeskyArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch * a.n * a.n));
  b.l = host.out(a.l, size(a.dtype, a.batch * a.n * a.n));
  host.cpu().cholesky(b);
  host.finish();
}

void Cuda::qr(const QrArgs& a) {
  ByCpu host(*this);
  const std::int64_t r = std::min(a.m, a.n);
  QrArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch * a.m * a.n));
  b.q = host.out(a.q, size(a.dtype, a.batch * a.m * r));
  b.r = host.out(a.r, size(a.dtype, a.batch * r * a.n));
  host.cpu().qr(b);
  host.finish();
}

void Cuda::determinant(const DeterminantArgs& a) {
  ByCpu host(*this);
  DeterminantArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch * a.n * a.n));
  b.det = host.out(a.det, size(a.dtype, a.batch));
  b.sign = host.out(a.sign, size(a.dtype, a.batch));
  b.log_abs = host.out(a.log_abs, size(real_of(a.dtype), a.batch));
  host.cpu().determinant(b);
  host.finish();
}

void Cuda::pinv(const PinvArgs& a) {
  ByCpu host(*this);
  const std::size_t bytes = size(a.dtype, a.batch * a.m * a.n);
  PinvArgs b = a;
  b.a = host.in(a.a, bytes);
  b.out = host.out(a.out, bytes);
  host.cpu().pinv(b);
  host.finish();
}

void Cuda::polar(const PolarArgs& a) {
  ByCpu host(*this);
  const std::size_t bytes = size(a.dtype, a.batch * a.m * a.n);
  PolarArgs b = a;
  b.a = host.in(a.a, bytes);
  b.out = host.out(a.out, bytes);
  host.cpu().polar(b);
  host.finish();
}

}  // namespace reel::cuda
