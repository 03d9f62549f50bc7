// Dispatch of linear equations: sylvester runs on the CPU; solve and triangular_solve fall back to it if the GPU finds
// an error.
#include "backends/cuda/linalg/host_kernel.h"
#include "backends/cuda/linalg/matrices.h"

namespace reel::cuda {

Matrices Cuda::matrices(const char* noted) {
  if (!noted) not_captured("its result is checked on the host");
  stream();
  retried([&] { libraries_->solver(); });
  return {*this, blas(), libraries_->solver(), *matrix_kernels_,
          capturing_ ? faults_->slot({noted, Lookup::of_matrices}) : nullptr};
}

void Cuda::solve(const SolveArgs& a) {
  if (a.n == 0 || a.k == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && cusolver_solve(matrices(solves_batched(a) ? "solve" : nullptr), a))
    return launched("solve", {a.batch, a.n, a.k});
  cpu_fallback(*this, &Backend::solve, a);
}

void Cuda::triangular_solve(const TriangularSolveArgs& a) {
  if (a.n == 0 || a.k == 0 || a.batch == 0) return;
  if (is_differentiable(a.dtype) && cusolver_triangular_solve(matrices("triangular_solve"), a))
    return launched("triangular_solve", {a.batch, a.n, a.k});
  cpu_fallback(*this, &Backend::triangular_solve, a);
}

void Cuda::sylvester(const SylvesterArgs& a) { run_on_host("sylvester", &Backend::sylvester, a); }

}  // namespace reel::cuda
