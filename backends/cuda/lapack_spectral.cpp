// Eigenvalues, singular values and Schur forms through the CPU; eigh only where it fails.
#include "backends/cuda/by_cpu.h"
#include "backends/cuda/cuda.h"

namespace reel::cuda {

namespace {
/// Bytes of n elements.
std::size_t size(DType dtype, std::int64_t n) { return static_cast<std::size_t>(n) * size_of(dtype); }
}  // namespace

std::int64_t Cuda::eig(const EigArgs& a) {
  ByCpu host(*this);
  const std::int64_t n = a.n, all = a.batch * n;
  const DType complex = complex_of(a.dtype);
  EigArgs b = a;
  b.a = host.in(a.a, size(a.dtype, all * n));
  b.values = host.out(a.values, size(complex, all));
  b.vectors = host.out(a.vectors, size(complex, all * n));
  b.largest = host.out(a.largest, size(DType::i32, all));
  b.independent = host.out(a.independent, size(DType::boolean, a.batch));
  const std::int64_t dependent = host.cpu().eig(b);
  host.finish();
  return dependent;
}

void Cuda::eigh(const EighArgs& a) {
  if (a.n == 0 || a.batch == 0) return;
  not_recorded(checked_on_host);
  if (is_differentiable(a.dtype) && eigh_here(a)) return;
  ByCpu host(*this);
  const std::int64_t n = a.n, all = a.batch * n;
  EighArgs b = a;
  b.a = host.in(a.a, size(a.dtype, all * n));
  b.values = host.out(a.values, size(real_of(a.dtype), all));
  b.vectors = host.out(a.vectors, size(a.dtype, all * n));
  b.largest = host.out(a.largest, size(DType::i32, all));
  host.cpu().eigh(b);
  host.finish();
}

void Cuda::svd(const SvdArgs& a) {
  ByCpu host(*this);
  const std::int64_t k = std::min(a.m, a.n);
  SvdArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch * a.m * a.n));
  b.u = host.out(a.u, size(a.dtype, a.batch * a.m * k));
  b.s = host.out(a.s, size(real_of(a.dtype), a.batch * k));
  b.vh = host.out(a.vh, size(a.dtype, a.batch * k * a.n));
  b.largest = host.out(a.largest, size(DType::i32, a.batch * k));
  host.cpu().svd(b);
  host.finish();
}

void Cuda::schur(const SchurArgs& a) {
  ByCpu host(*this);
  const std::size_t bytes = size(a.dtype, a.batch * a.n * a.n);
  SchurArgs b = a;
  b.a = host.in(a.a, bytes);
  b.q = host.out(a.q, bytes);
  b.t = host.out(a.t, bytes);
  host.cpu().schur(b);
  host.finish();
}

std::int64_t Cuda::spectral_radius(const SpectralRadiusArgs& a) {
  ByCpu host(*this);
  const DType complex = complex_of(a.dtype);
  SpectralRadiusArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch * a.n * a.n));
  b.radius = host.out(a.radius, size(real_of(a.dtype), a.batch));
  b.value = host.out(a.value, size(complex, a.batch));
  b.right = host.out(a.right, size(complex, a.batch * a.n));
  b.left = host.out(a.left, size(complex, a.batch * a.n));
  const std::int64_t multiple = host.cpu().spectral_radius(b);
  host.finish();
  return multiple;
}

}  // namespace reel::cuda
