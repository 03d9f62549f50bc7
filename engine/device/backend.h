// The interface of a device: plain kernels on plain pointers. Ops call these; a backend knows nothing of ops, tensors
// or tapes. Every kernel has a default that throws "not supported", so a new backend can grow one kernel at a time.
#pragma once
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/device/kernel_calls.h"

namespace reel {

class Backend;
struct LoweredLoop;
#define REEL_DECLARE(result, name, Args) struct Args;
REEL_OTHER_KERNELS(REEL_DECLARE)
#undef REEL_DECLARE

/// A reference-counted block of device memory that tensors share.
struct Storage {
  std::atomic<int> references{0};
  std::uint32_t version = 0;  // counts in-place changes, so that a vjp detects that a saved value was overwritten
  Backend* backend = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Shared ownership of a Storage; the last owner releases it to its backend.
class StoragePtr {
 public:
  StoragePtr() = default;
  explicit StoragePtr(Storage* storage) : storage_(storage) { retain(); }
  StoragePtr(const StoragePtr& other) : storage_(other.storage_) { retain(); }
  StoragePtr(StoragePtr&& other) noexcept : storage_(other.storage_) { other.storage_ = nullptr; }
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    if (storage_ && storage_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  void retain() {
    if (storage_) storage_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void destroy();
  Storage* storage_ = nullptr;
};

struct MemoryUse {
  std::size_t live_bytes = 0, cached_bytes = 0, peak_bytes = 0;  // of blocks, rounded up to their size class
  std::size_t system_calls = 0;                                  // allocations from the system
};

/// The most memory that a device can allocate, with a text for messages: "this machine has 24.6 GB".
struct MemoryLimit {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  std::string text = "";
};
/// "4.1 GB", with 1 GB = 10^9 bytes.
std::string memory_text(double bytes);
/// An amount with the prefix of its unit: "2.6 Mflop".
std::string amount_text(double amount, const char* unit);

/// Kernels that a backend captured instead of running them, to replay any number of times on the same memory. Blocks
/// allocated during the capture belong to the graph and are not reused. Destroying it before stop() abandons the
/// capture.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// Ends the capture; later kernels run immediately again.
  virtual void stop() = 0;
  /// Runs all captured kernels. Call it after stop().
  virtual void replay() = 0;
  /// The number of captured kernels and copies.
  virtual std::size_t size() const = 0;
};
/// Thrown during a capture by an operation that cannot be captured, such as reading a value on the host. The
/// CapturedGraph is unusable then.
struct NotCapturable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The cost model for planning loops. bench/bench_costs.cpp measures each price on the machine it runs on; these are
/// the CPU's; a device with different ones overrides Backend::costs().
struct CostModel {
  std::int64_t step_cache = std::int64_t{1} << 19;      // bytes of a thread's cache that a shard's step may fill
  std::int64_t few_weights = std::int64_t{1} << 19;     // bytes: weights up to here are cheap to read once a shard
  std::int64_t small_table = std::int64_t{1} << 22;     // bytes: rows of a table up to here are read from a cache
  std::int64_t copied_at_once = std::int64_t{1} << 17;  // bytes that a first copy leaves in the cache for a second
  std::int64_t narrow = 48;           // a product's extent: at most this, one product per step is as fast as one of all
  std::int64_t steps_to_prepack = 4;  // fewest steps that pay for a weight's new layout
  // Per element of 4 bytes, in additions inside a fusion group, as Traits::cost. A view may have to be copied to its
  // stacked buffer.
  double save = 16, save_view = 20;             // writes a value for the backward pass, and reads it there
  double memory_bound_product = 1, flop = 0.2;  // computes an element of a narrow product again, and each operation
};

/// What a loop's shards depend on: rows of the batch, bytes of its weights, bytes of all rows in a step.
struct ShardSizes {
  std::int64_t rows, weights = 0, step = 0;
};

class Backend {
 public:
  Backend();
  virtual ~Backend() = default;
  /// A number unique to this backend within the process, never reused.
  std::uint64_t serial() const { return serial_; }
  /// What --device takes: "cpu", "cuda", "cuda:1".
  virtual std::string name() const = 0;
  /// Allocates `bytes` bytes, aligned for vector loads; throws OutOfMemory.
  virtual Storage* allocate(std::size_t bytes) = 0;
  virtual void release(Storage* storage) = 0;
  virtual MemoryUse memory() const { return {}; }
  virtual MemoryLimit memory_limit() const { return {}; }
  /// Resets the peak to the bytes that are live now.
  virtual void reset_peak() {}
  /// Called before the host looks at elements through a typed pointer (Tensor::data_as).
  virtual void host_access() {}
  virtual void read(void* host, const void* device, std::size_t bytes) = 0;
  virtual void write(void* device, const void* host, std::size_t bytes) = 0;
  /// The number of threads that kernels may use; ignored by devices without host threads.
  virtual void set_threads(int) {}
  /// Sets the number of shards of every loop; 0: by sizes.
  virtual void set_shards(int) {}
  /// How many shards a loop splits its batch into. It determines the order of sums, so it must not depend on threads.
  virtual std::int64_t shards(const ShardSizes&) const { return 1; }
  virtual int threads() const { return 1; }
  /// True for CPUs, where caches matter: time loops shard the batch, and fusion groups run block by block in host
  /// memory. False: each call or fusion group of a step is a kernel on the full batch, and its local operands have no
  /// buffers.
  virtual bool runs_in_blocks() const { return false; }
  /// The cost model for planning loops.
  virtual CostModel costs() const { return {}; }
  /// Calls f(part) for all parts, in parallel if there are threads. Kernels called inside f run on f's thread. Throws
  /// what f throws.
  virtual void parallel(int parts, const std::function<void(int)>& f) {
    for (int p = 0; p < parts; ++p) f(p);
  }
  /// Called before each step of a loop that runs step by step, on its thread. An exception ends the loop.
  std::function<void()> before_step;
  /// Captures kernels from here on instead of running them, until CapturedGraph::stop(). Null: this backend cannot
  /// capture.
  virtual std::unique_ptr<CapturedGraph> capture() { return nullptr; }

  // The kernels, each with a default that throws.
#define REEL_KERNEL(name, Args) \
  virtual void name(const Args&) { unsupported(#name); }
#define REEL_OTHER_KERNEL(result, name, Args) \
  virtual result name(const Args&) { unsupported(#name); }
  REEL_KERNELS(REEL_KERNEL)
  REEL_OTHER_KERNELS(REEL_OTHER_KERNEL)
#undef REEL_KERNEL
#undef REEL_OTHER_KERNEL
  /// Can this call join a fusion group? Its operands have no indices yet.
  virtual bool fuses(const FusedCall&) { return false; }
  /// Prepares a fusion group, once before many runs.
  virtual void resolve(FusedArgs&) {}
  /// Runs a loop on buffers at these addresses: by default step by step; a backend may run all steps in one kernel.
  /// Values that a later step overwrites need not exist afterwards.
  virtual void run(const LoweredLoop& loop, std::span<std::byte* const> buffers);

  /// Throws OutOfMemory when `bytes` are more than the device has: "[subject] what need 4 TB, this machine has 24.6 GB.
  /// Hint: hint". For sizes that are known before anything is allocated.
  void require_memory(const std::string& subject, const std::string& what, double bytes, const std::string& hint) const;

 protected:
  [[noreturn]] void unsupported(const char* kernel) const;

 private:
  std::uint64_t serial_;
};

/// Creates the backend of a device on its first use; `rest` is the part of its name after the kind, such as ":1".
/// Throws Error when there is no such device.
using MakeBackend = std::unique_ptr<Backend> (*)(const std::string& rest);
/// Registers a kind of device ("cuda"): one line at the end of its backend's main file. `make` is called on first use.
bool register_backend(const std::string& kind, MakeBackend make);
/// The device called `name` ("cpu", "cuda:1"), or the default one. Throws an Error that lists the kinds in this build.
Backend& backend(const std::string& name = {});
/// Sets the device of new tensors; "cpu" before the first call. Throws as backend() does.
Backend& set_default_backend(const std::string& name);
/// The kinds of device in this build.
std::vector<std::string> backend_names();

}  // namespace reel
