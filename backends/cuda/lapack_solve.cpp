// Linear equations: triangular_solve and sylvester through the CPU, and solve where it fails.
#include "backends/cuda/by_cpu.h"
#include "backends/cuda/cuda.h"

namespace reel::cuda {

namespace {
/// Elements of a batch of matrices of n: one of them where they are shared.
std::int64_t all(std::int64_t batch, std::int64_t stride, std::int64_t n) {
  return batch == 0 ? 0 : (batch - 1) * stride + n;
}

/// The same for both ways of solving.
template <class Args>
void solve_by_cpu(Backend& device, void (Backend::*kernel)(const Args&), const Args& a) {
  by_cpu(device, kernel, a, Part{&Args::a, a.dtype, all(a.batch, a.stride_a, a.n * a.n)},
         Part{&Args::b, a.dtype, all(a.batch, a.stride_b, a.n * a.k)}, Part{&Args::x, a.dtype, a.batch * a.n * a.k});
}
}  // namespace

void Cuda::solve(const SolveArgs& a) {
  if (a.n == 0 || a.k == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && solve_here(a)) return;
  solve_by_cpu(*this, &Backend::solve, a);
}

void Cuda::triangular_solve(const TriangularSolveArgs& a) { solve_by_cpu(*this, &Backend::triangular_solve, a); }

void Cuda::sylvester(const SylvesterArgs& a) {
  by_cpu(*this, &Backend::sylvester, a, Part{&SylvesterArgs::a, a.dtype, all(a.batch, a.stride_a, a.m * a.m)},
         Part{&SylvesterArgs::b, a.dtype, all(a.batch, a.stride_b, a.n * a.n)},
         Part{&SylvesterArgs::c, a.dtype, all(a.batch, a.stride_c, a.m * a.n)},
         Part{&SylvesterArgs::x, a.dtype, a.batch * a.m * a.n});
}

}  // namespace reel::cuda
