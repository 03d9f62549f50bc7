// A caching allocator: freed blocks wait in lists by size and are handed out again, so that a training step, which asks
// for the same sizes every time, allocates nothing from the system after the first.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "engine/backend.h"

namespace reel {

/// Held for a few instructions at a time, where a mutex would cost as much as the work it guards.
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
  using Raw = std::function<void*(std::size_t bytes)>;  // nullptr when there is no more
  using Free = std::function<void(void* block, std::size_t bytes)>;

  /// `keeps`: freed blocks go back at the end alone, not when there is no more.
  /// `limit`: bytes, in use and cached, beyond which the system is not asked.
  CachingAllocator(Raw raw, Free free, bool keeps = false, std::size_t limit = std::numeric_limits<std::size_t>::max())
      : raw_(std::move(raw)), free_(std::move(free)), keeps_(keeps), limit_(limit) {}
  CachingAllocator(const CachingAllocator&) = delete;
  ~CachingAllocator() { release_cache(); }

  /// A block of at least `bytes`; when the system has no more, cached blocks are given back and it is asked once again.
  /// Returns nullptr when that fails too.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes);
  void release_cache();
  MemoryUse use() const;
  void reset_peak();

 private:
  // Four classes an octave: a block is at most a quarter larger than what was asked for.
  static constexpr std::size_t classes = 256;
  static std::size_t class_of(std::size_t bytes);
  static std::size_t class_bytes(std::size_t c);
  void release_cache_locked();
  void* system_block(std::size_t bytes, std::size_t size);

  Raw raw_;
  Free free_;
  bool keeps_;
  std::size_t limit_;
  std::size_t asked_ = 0;  // bytes in use, not rounded up
  mutable SpinLock lock_;
  std::array<std::vector<void*>, classes> cached_;
  MemoryUse use_;
};

/// A cache of its own for what is allocated while a device writes kernels down: its blocks come from `all`, and are
/// nobody else's until they go back there with the last owner of the pool. Storages in it are owners.
std::shared_ptr<CachingAllocator> make_pool(CachingAllocator& all);

}  // namespace reel
