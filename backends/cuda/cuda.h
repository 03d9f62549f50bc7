// The CUDA backend. Each family of kernels has its own file, with the same stem as the CPU's where both have one; this
// header declares the class. All work of a device goes into one stream, in order.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "backends/cuda/runtime/device_options.h"
#include "backends/shared/allocator.h"
#include "engine/device/backend.h"
#include "ops/functors/cross_entropy.h"
#include "ops/functors/linalg.h"
#include "ops/functors/update.h"

namespace reel::cuda {

class Faults;
class FftPlans;
class GeneratedKernels;
class Graph;
class Libraries;
struct LoopLimits;
struct LoopRun;
struct Matrices;
class MatrixKernels;
class Staging;
struct Cublas;

/// Throws Error unless `code` is success, OutOfMemory if there was no room; `what` is the call or kernel.
void check(cudaError_t code, const char* what);

class Cuda final : public Backend {
 public:
  explicit Cuda(const DeviceOptions& options);
  ~Cuda() override;
  std::string name() const override { return options_.name(); }
  /// The number of its GPU among those that this process sees.
  int index() const { return options_.index; }
  /// The stream that all of its work goes into.
  cudaStream_t stream_of_work() { return stream(); }
  Storage* allocate(std::size_t bytes) override;
  void release(Storage* storage) override;
  MemoryUse memory() const override { return allocator_.use(); }
  void reset_peak() override { allocator_.reset_peak(); }
  std::unique_ptr<CapturedGraph> capture() override;
  void read(void* host, const void* device, std::size_t bytes) override;
  void write(void* device, const void* host, std::size_t bytes) override;

  CostModel costs() const override;
  bool fuses(const FusedCall& call) override;
  void run(const LoweredLoop& loop, std::span<std::byte* const> buffers) override;
  /// From now on waits for each loop, measures it and tells f of it; nothing: no more.
  void watch_loops(std::function<void(const LoopRun&)> f) { watcher_ = std::move(f); }
  const LoopLimits& loop_limits() const { return *limits_; }
  REEL_KERNELS(REEL_OVERRIDE)
  REEL_OTHER_KERNELS(REEL_OVERRIDE_OTHER)

 private:
  friend class Graph;
  /// A block's header, and the pool that the block returns to; null for the device's own allocator.
  struct Block : Storage {
    std::shared_ptr<CachingAllocator> pool;
  };
  Storage* allocate_from(const std::shared_ptr<CachingAllocator>& pool, std::size_t bytes);
  /// Throws NotCapturable during a capture.
  void not_captured(const char* why) const;
  /// Makes this device the calling thread's current device.
  void make_current();
  /// The stream of all work, with this device made current.
  cudaStream_t stream();
  struct PlannedLoop;
  /// What is known of a loop but for the addresses: made in its first run, and kept by the loop.
  PlannedLoop& planned(const LoweredLoop& loop, std::span<std::byte* const> buffers);
  void run_planned(PlannedLoop& planned, const LoweredLoop& loop, std::span<std::byte* const> buffers);
  /// Reports the indices that are not below `rows`, as the kernel of this name does.
  void check_indices(const char* kernel, const std::int32_t* index, std::int64_t count, std::int64_t rows);
  /// Call after each launch: throws Error that names the kernel, what it computes and its sizes.
  void launched(const char* kernel, const char* what, std::initializer_list<std::int64_t> sizes);
  void launched(const char* kernel, std::initializer_list<std::int64_t> sizes) { launched(kernel, "", sizes); }
  /// Memory that is freed with the pointer; kernels launched before that may use it.
  StoragePtr scratch(std::size_t bytes) { return StoragePtr(allocate(bytes)); }
  /// The context for linear algebra. `noted` names the kernel if its check can be recorded as a fault; without it, the
  /// kernel cannot be captured.
  Matrices matrices(const char* noted = nullptr);
  template <class Result, class Args>
  Result run_on_host(const char* name, Result (Backend::*kernel)(const Args&), const Args& args);
  /// cuBLAS, opened on first use.
  const Cublas& blas();
  /// Calls f, which takes memory from the driver by itself. If there is none, frees the cache and calls f once more.
  void retried(const std::function<void()>& f);
  /// Copies contiguous bytes, without a StridedLoop.
  void copy_bytes(void* to, const void* from, std::size_t bytes);

  DeviceOptions options_;
  std::unique_ptr<LoopLimits> limits_;
  CachingAllocator allocator_;
  std::vector<std::unique_ptr<Block>> headers_;  // of freed blocks, for reuse
  std::function<void(const LoopRun&)> watcher_;
  Graph* capturing_ = nullptr;  // the capture in progress, or null
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<Libraries> libraries_;
  std::unique_ptr<MatrixKernels> matrix_kernels_;
  std::unique_ptr<GeneratedKernels> generated_;
  std::unique_ptr<FftPlans> fft_plans_;  // destroyed before the libraries that they use
};

}  // namespace reel::cuda
