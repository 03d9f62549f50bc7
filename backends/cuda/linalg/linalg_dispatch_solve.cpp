// Dispatch of linear equations: sylvester runs on the CPU; solve and triangular_solve fall back to it if the GPU finds
// an error.
#include "backends/cuda/cuda.h"
#include "backends/cuda/linalg/matrices.h"
#include "backends/cuda/runtime/cpu_fallback.h"
#include "backends/cuda/runtime/faults.h"

namespace reel::cuda {

namespace {
/// The elements that a batch of matrices spans: n each, or one matrix if the batch shares it.
std::int64_t all(std::int64_t batch, std::int64_t stride, std::int64_t n) {
  return batch == 0 ? 0 : (batch - 1) * stride + n;
}

/// The CPU fallback for both kinds of solve.
template <class Args>
void solve_by_cpu(Backend& device, void (Backend::*kernel)(const Args&), const Args& a) {
  cpu_fallback(device, kernel, a, Part{&Args::a, a.dtype, all(a.batch, a.stride_a, a.n * a.n)},
               Part{&Args::b, a.dtype, all(a.batch, a.stride_b, a.n * a.k)},
               Part{&Args::x, a.dtype, a.batch * a.n * a.k});
}
}  // namespace

Matrices Cuda::matrices(const char* noted) {
  if (!noted) not_captured("its result is checked on the host");
  stream();
  return {*this, libraries_->blas(), libraries_->solver(), *matrix_kernels_,
          capturing_ ? faults_->slot({noted, Lookup::of_matrices}) : nullptr};
}

void Cuda::solve(const SolveArgs& a) {
  if (a.n == 0 || a.k == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && cusolver_solve(matrices(), a)) return launched("solve", {a.batch, a.n, a.k});
  solve_by_cpu(*this, &Backend::solve, a);
}

void Cuda::triangular_solve(const TriangularSolveArgs& a) {
  if (a.n == 0 || a.k == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && cusolver_triangular_solve(matrices("triangular_solve"), a))
    return launched("triangular_solve", {a.batch, a.n, a.k});
  solve_by_cpu(*this, &Backend::triangular_solve, a);
}

void Cuda::sylvester(const SylvesterArgs& a) {
  cpu_fallback(*this, &Backend::sylvester, a, Part{&SylvesterArgs::a, a.dtype, all(a.batch, a.stride_a, a.m * a.m)},
               Part{&SylvesterArgs::b, a.dtype, all(a.batch, a.stride_b, a.n * a.n)},
               Part{&SylvesterArgs::c, a.dtype, all(a.batch, a.stride_c, a.m * a.n)},
               Part{&SylvesterArgs::x, a.dtype, a.batch * a.m * a.n});
}

}  // namespace reel::cuda
