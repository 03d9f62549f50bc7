// Linear equations: triangular_solve and sylvester through the CPU, and solve where it fails.
#include "backends/cuda/by_cpu.h"
#include "backends/cuda/cuda.h"

namespace reel::cuda {

namespace {
/// Bytes of a batch of matrices of n elements: one of them where they are shared.
std::size_t size(DType dtype, std::int64_t batch, std::int64_t stride, std::int64_t n) {
  const std::int64_t all = batch == 0 ? 0 : stride == 0 ? n : (batch - 1) * stride + n;
  return static_cast<std::size_t>(all) * size_of(dtype);
}

/// The same for both ways of solving.
template <class Args, class Solve>
void solve_by_cpu(Backend& device, const Args& a, Solve&& solve) {
  ByCpu host(device);
  Args b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch, a.stride_a, a.n * a.n));
  b.b = host.in(a.b, size(a.dtype, a.batch, a.stride_b, a.n * a.k));
  b.x = host.out(a.x, size(a.dtype, a.batch, a.n * a.k, a.n * a.k));
  solve(host.cpu(), b);
  host.finish();
}
}  // namespace

void Cuda::solve(const SolveArgs& a) {
  if (a.n == 0 || a.k == 0 || a.batch == 0) return;
  not_recorded(checked_on_host);
  if (is_differentiable(a.dtype) && solve_here(a)) return;
  solve_by_cpu(*this, a, [](Backend& cpu, const SolveArgs& b) { cpu.solve(b); });
}

void Cuda::triangular_solve(const TriangularSolveArgs& a) {
  solve_by_cpu(*this, a, [](Backend& cpu, const TriangularSolveArgs& b) { cpu.triangular_solve(b); });
}

void Cuda::sylvester(const SylvesterArgs& a) {
  ByCpu host(*this);
  SylvesterArgs b = a;
  b.a = host.in(a.a, size(a.dtype, a.batch, a.stride_a, a.m * a.m));
  b.b = host.in(a.b, size(a.dtype, a.batch, a.stride_b, a.n * a.n));
  b.c = host.in(a.c, size(a.dtype, a.batch, a.stride_c, a.m * a.n));
  b.x = host.out(a.x, size(a.dtype, a.batch, a.m * a.n, a.m * a.n));
  host.cpu().sylvester(b);
  host.finish();
}

}  // namespace reel::cuda
