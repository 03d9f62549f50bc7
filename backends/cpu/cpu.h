// The CPU backend. One file a family of kernels, with the same file stems as every other backend; this header is the
// class.
#pragma once
#include "backends/cpu/fft_plans.h"
#include "engine/allocator.h"
#include "engine/backend.h"

namespace reel::cpu {

class Cpu final : public Backend {
 public:
  Cpu();
  std::string name() const override { return "cpu"; }
  Storage* allocate(std::size_t bytes) override;
  void release(Storage* storage) override;
  MemoryUse memory() const override { return allocator_.use(); }
  void read(void* host, const void* device, std::size_t bytes) override;
  void write(void* device, const void* host, std::size_t bytes) override;
  void set_threads(int threads) override;

  void fill(const FillArgs& a) override;
  void copy(const CopyArgs& a) override;
  void cast(const CastArgs& a) override;
  void map(const MapArgs& a) override;
  void zip(const ZipArgs& a) override;
  void select(const SelectArgs& a) override;
  void reduce(const ReduceArgs& a) override;
  void argmax(const ArgmaxArgs& a) override;
  void cumsum(const CumsumArgs& a) override;
  void row_function(const RowFunctionArgs& a) override;
  void gemm(const GemmArgs& a) override;
  void gather_rows(const RowsArgs& a) override;
  void scatter_add_rows(const RowsArgs& a) override;
  void take_along(const TakeArgs& a) override;
  void put_along(const TakeArgs& a) override;
  void rotate(const RotateArgs& a) override;
  void random(const RandomArgs& a) override;
  void update(const UpdateArgs& a) override;
  double sum_of_squares(DType dtype, std::int64_t n, const void* x) override;
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
  void polar(const PolarArgs& a) override;

 private:
  CachingAllocator allocator_;
  FftPlans fft_plans_;
};

}  // namespace reel::cpu
