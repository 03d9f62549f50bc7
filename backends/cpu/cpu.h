// The CPU backend. Each family of kernels has its own file, with the same file stem in every backend; this header
// declares the class.
#pragma once
#include <algorithm>

#include "backends/cpu/kernels/fft_plans.h"
#include "backends/cpu/threads/thread_pool.h"
#include "backends/shared/allocator.h"
#include "engine/core/cores.h"
#include "engine/device/backend.h"

namespace reel::cpu {

class Cpu final : public Backend {
 public:
  Cpu();
  std::string name() const override { return "cpu"; }
  Storage* allocate(std::size_t bytes) override;
  void release(Storage* storage) override;
  MemoryUse memory() const override { return allocator_.use(); }
  MemoryLimit memory_limit() const override { return limit_; }
  void reset_peak() override { allocator_.reset_peak(); }
  void read(void* host, const void* device, std::size_t bytes) override;
  void write(void* device, const void* host, std::size_t bytes) override;
  /// Uses fewer threads, with a warning, if the address space limit leaves no memory for OpenBLAS's buffers on each.
  void set_threads(int threads) override;
  int threads() const override { return pool_.threads(); }
  bool runs_in_blocks() const override { return true; }
  void parallel(int parts, const std::function<void(int)>& f) override { pool_.run(parts, f); }

  void fill(const FillArgs& a) override;
  void copy(const CopyArgs& a) override;
  void cast(const CastArgs& a) override;
  void map(const MapArgs& a) override;
  void zip(const ZipArgs& a) override;
  void select(const SelectArgs& a) override;
  bool fuses(const FusedCall&) override { return true; }
  void resolve(FusedCall& call) override;
  void fused(const FusedArgs& a) override;
  void reduce(const ReduceArgs& a) override;
  void argmax(const ArgmaxArgs& a) override;
  void cumsum(const CumsumArgs& a) override;
  void row_function(const RowFunctionArgs& a) override;
  void gemm(const GemmArgs& a) override;
  void gather_rows(const RowsArgs& a) override;
  void segment_sum(const RowsArgs& a) override;
  void take_along(const TakeArgs& a) override;
  void scatter_add(const TakeArgs& a) override;
  void rotate(const RotateArgs& a) override;
  void random(const RandomArgs& a) override;
  void update(const UpdateArgs& a) override;
  void clip(std::int64_t n, const double* numbers, double limit, double* scale) override;
  void sums_of_squares(DType dtype, std::span<const SquaresOf> arrays) override;
  void fft(const FftArgs& a) override;
  void real_fft(const RealFftArgs& a) override;

  std::int64_t eig(const EigArgs& a) override;
  void eigh(const EighArgs& a) override;
  void svd(const SvdArgs& a) override;
  void schur(const SchurArgs& a) override;
  std::int64_t spectral_radius(const SpectralRadiusArgs& a) override;

  void solve(const SolveArgs& a) override;
  void triangular_solve(const TriangularSolveArgs& a) override;
  void sylvester(const SylvesterArgs& a) override;
  void lu(const LuArgs& a) override;
  void cholesky(const CholeskyArgs& a) override;
  void qr(const QrArgs& a) override;
  void determinant(const DeterminantArgs& a) override;
  void pinv(const PinvArgs& a) override;
  void polar_factor(const PolarFactorArgs& a) override;

 private:
  /// Calls f(first, last) on chunks of 0..n-1, on all threads if n >= `enough`. Every chunk but the last is a multiple
  /// of `grain`.
  template <class F>
  void shared(std::int64_t n, std::int64_t enough, F&& f, std::int64_t grain = 64);

  const MemoryLimit limit_;
  CachingAllocator allocator_;
  FftPlans fft_plans_;
  int for_blas_ = 0;  // number of threads that OpenBLAS has buffers for
  ThreadPool pool_;
};

template <class F>
void Cpu::shared(std::int64_t n, std::int64_t enough, F&& f, std::int64_t grain) {
  const std::int64_t threads = pool_.threads();
  if (n < enough || threads == 1 || ThreadPool::inside()) return f(std::int64_t{0}, n);
  const std::int64_t share = ((n + threads - 1) / threads + grain - 1) / grain * grain;
  pool_.run(static_cast<int>((n + share - 1) / share), [&](int p) { f(p * share, std::min(n, (p + 1) * share)); });
}

}  // namespace reel::cpu
