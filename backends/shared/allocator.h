// A caching allocator: freed blocks are kept in free lists by size class and reused. A training step asks for the same
// sizes every time, so after the first step nothing is allocated from the system.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device/backend.h"

namespace reel {

/// A lock held for a few instructions, where a mutex would cost as much as the work it guards.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

class CachingAllocator {
 public:
  using Raw = std::function<void*(std::size_t bytes)>;  // nullptr when out of memory
  using Free = std::function<void(void* block, std::size_t bytes)>;

  /// `keeps`: cached blocks are freed only on destruction, not when memory runs out.
  /// `limit`: the most bytes, in use and cached, that are requested from the system.
  CachingAllocator(Raw raw, Free free, bool keeps = false, std::size_t limit = std::numeric_limits<std::size_t>::max())
      : raw_(std::move(raw)), free_(std::move(free)), keeps_(keeps), limit_(limit) {}
  CachingAllocator(const CachingAllocator&) = delete;
  ~CachingAllocator() { release_cache(); }

  /// Returns a block of at least `bytes`. When the system is out of memory, the cache is released and the request is
  /// retried once; returns nullptr if that fails too.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes);
  void release_cache();
  MemoryUse use() const;
  void reset_peak();

 private:
  // Four size classes per octave: a block is at most a quarter larger than requested.
  static constexpr std::size_t classes = 256;
  static std::size_t class_of(std::size_t bytes);
  static std::size_t class_bytes(std::size_t c);
  /// A block of the cache; nullptr if it has none of this size.
  void* cached_block(std::size_t bytes, std::size_t c);
  /// A block of the system, and what gives it the cache back. Call them with system_ locked.
  void* system_block(std::size_t bytes, std::size_t size);
  void free_cache();
  void count_in_use(std::size_t bytes, std::size_t size);

  Raw raw_;
  Free free_;
  bool keeps_;
  std::size_t limit_;
  std::mutex system_;      // while the system is called, which takes long: others wait asleep, or use the cache
  mutable SpinLock lock_;  // of what follows
  std::size_t asked_ = 0;  // bytes in use, not rounded up to size classes
  std::array<std::vector<void*>, classes> cached_;
  MemoryUse use_;
};

/// A private pool for what is allocated during a capture. Its blocks come from `all` and return there when the last
/// owner of the pool goes; each Storage in the pool is an owner.
std::shared_ptr<CachingAllocator> make_pool(CachingAllocator& all);

}  // namespace reel
