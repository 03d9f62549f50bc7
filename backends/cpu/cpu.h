// The CPU backend. Each family of kernels has its own file, with the same file stem in every backend; this header
// declares the class.
#pragma once
#include <algorithm>

#include "backends/cpu/codegen/compiled_groups.h"
#include "backends/cpu/kernels/fft_plans.h"
#include "backends/cpu/threads/cores.h"
#include "backends/cpu/threads/thread_pool.h"
#include "backends/shared/allocator.h"
#include "engine/device/backend.h"
#include "ops/functors/cross_entropy.h"
#include "ops/functors/linalg.h"
#include "ops/functors/update.h"

namespace reel::cpu {

class Cpu final : public Backend {
 public:
  /// `bf16`: large products of f32 round their operands to bf16, which bf16::missing() must allow.
  explicit Cpu(bool bf16 = false);
  std::string name() const override { return bf16_ ? "cpu,bf16" : "cpu"; }
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
  void set_shards(int shards) override { shards_ = shards; }
  std::int64_t shards(const ShardSizes& sizes) const override;
  bool runs_in_blocks() const override { return true; }
  void parallel(int parts, const std::function<void(int)>& f) override { pool_.run(parts, f); }

  bool fuses(const FusedCall&) override { return true; }
  void resolve(FusedArgs& group) override;
  void run(const LoweredLoop& loop, std::span<std::byte* const> buffers) override;
  /// Ends compilations at the end of the program.
  void stop_compiling() { groups_.stop(); }
  REEL_KERNELS(REEL_OVERRIDE)
  REEL_OTHER_KERNELS(REEL_OVERRIDE_OTHER)

 private:
  /// Calls f(first, last) on chunks of 0..n-1, on all threads if n >= `enough`. Every chunk but the last is a multiple
  /// of `grain`.
  template <class F>
  void shared(std::int64_t n, std::int64_t enough, F&& f, std::int64_t grain = 64);

  const bool bf16_;
  const MemoryLimit limit_;
  int shards_ = 0;  // of every loop; 0: by sizes
  CachingAllocator allocator_;
  FftPlans fft_plans_;
  ThreadPool pool_;
  CompiledGroups groups_;
};

template <class F>
void Cpu::shared(std::int64_t n, std::int64_t enough, F&& f, std::int64_t grain) {
  const std::int64_t threads = pool_.threads();
  if (n < enough || threads == 1 || ThreadPool::inside()) return f(std::int64_t{0}, n);
  const std::int64_t share = ((n + threads - 1) / threads + grain - 1) / grain * grain;
  pool_.run(static_cast<int>((n + share - 1) / share), [&](int p) { f(p * share, std::min(n, (p + 1) * share)); });
}

}  // namespace reel::cpu
