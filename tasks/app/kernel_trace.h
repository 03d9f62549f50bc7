// --trace-kernels: which kernels a program calls, how often, and how long they take.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "engine/device/backend.h"
#include "ops/functors/cross_entropy.h"
#include "ops/functors/linalg.h"
#include "ops/functors/update.h"

namespace reel {

/// A device that runs every kernel on another one, and adds up calls and time by kernel and sizes. On a GPU the time is
/// that of the launch, unless the device waits for each kernel ("cuda,sync"); loops run call by call.
class KernelTrace : public Backend {
 public:
  explicit KernelTrace(Backend& device) : device_(device) {}
  /// A line for each kernel and size: calls, time in all and of one call, share of all kernels' time.
  std::string table() const;
  /// Forgets the calls so far.
  void reset();

  std::string name() const override { return device_.name(); }
  Storage* allocate(std::size_t bytes) override;
  void release(Storage* storage) override;
  MemoryUse memory() const override { return device_.memory(); }
  MemoryLimit memory_limit() const override { return device_.memory_limit(); }
  void reset_peak() override { device_.reset_peak(); }
  void read(void* host, const void* device, std::size_t bytes) override { device_.read(host, device, bytes); }
  void write(void* device, const void* host, std::size_t bytes) override { device_.write(device, host, bytes); }
  void set_threads(int threads) override { device_.set_threads(threads); }
  void set_shards(int shards) override { device_.set_shards(shards); }
  std::int64_t shards(const ShardSizes& sizes) const override { return device_.shards(sizes); }
  int threads() const override { return device_.threads(); }
  bool runs_in_blocks() const override { return device_.runs_in_blocks(); }
  CostModel costs() const override { return device_.costs(); }
  void parallel(int parts, const std::function<void(int)>& f) override { device_.parallel(parts, f); }
  bool fuses(const FusedCall& call) override { return device_.fuses(call); }
  void resolve(FusedArgs& group) override { device_.resolve(group); }
  REEL_KERNELS(REEL_OVERRIDE)
  REEL_OTHER_KERNELS(REEL_OVERRIDE_OTHER)

 private:
  struct Sum {
    std::int64_t calls = 0;
    double seconds = 0;
  };
  /// Runs f, which makes the call, and adds its time.
  template <class Args, class F>
  auto timed(const char* kernel, const Args& args, F f);

  std::map<std::string, Sum> sums_;  // by kernel and sizes

 protected:
  Backend& device_;
  mutable std::mutex mutex_;
};

/// What tells calls of one kernel apart: dtypes, sizes, functors: "f32 20x128 128x128".
std::string sizes_of(const KernelCall& call);

}  // namespace reel
