// The CPU backend. One file a family of kernels, with the same file stems as every other backend; this header is the
// class.
#pragma once
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
  void gemm(const GemmArgs& a) override;
  void gather_rows(const RowsArgs& a) override;
  void scatter_add_rows(const RowsArgs& a) override;
  void pick(const PickArgs& a) override;
  void place(const PickArgs& a) override;
  void random(const RandomArgs& a) override;
  void update(const UpdateArgs& a) override;
  double sum_of_squares(DType dtype, std::int64_t n, const void* x) override;

 private:
  CachingAllocator allocator_;
};

}  // namespace reel::cpu
