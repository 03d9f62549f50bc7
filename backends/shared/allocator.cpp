#include "backends/shared/allocator.h"

#include <algorithm>
#include <bit>
#include <mutex>

namespace reel {

std::size_t CachingAllocator::class_of(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 64);
  const auto octave = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // bytes in (2^octave, 2^(octave+1)]
  const std::size_t base = std::size_t{1} << octave, quarter = base / 4;
  return 4 * octave + (bytes - base + quarter - 1) / quarter - 1;
}

std::size_t CachingAllocator::class_bytes(std::size_t c) {
  const std::size_t base = std::size_t{1} << (c / 4);
  return base + (c % 4 + 1) * (base / 4);
}

void* CachingAllocator::system_block(std::size_t bytes, std::size_t size) {
  const std::size_t held = asked_ + use_.cached_bytes;
  if (held > limit_ || bytes > limit_ - held) return nullptr;
  ++use_.system_calls;
  return raw_(size);
}

void* CachingAllocator::allocate(std::size_t bytes) {
  const std::size_t c = class_of(bytes), size = class_bytes(c);
  const std::lock_guard guard(lock_);
  void* block = nullptr;
  if (!cached_[c].empty()) {
    block = cached_[c].back();
    cached_[c].pop_back();
    use_.cached_bytes -= size;
  } else {
    block = system_block(bytes, size);
    if (!block && !keeps_) {
      release_cache_locked();
      block = system_block(bytes, size);
    }
    if (!block) return nullptr;
  }
  asked_ += bytes;
  use_.live_bytes += size;
  use_.peak_bytes = std::max(use_.peak_bytes, use_.live_bytes);
  return block;
}

void CachingAllocator::release(void* block, std::size_t bytes) {
  const std::size_t c = class_of(bytes), size = class_bytes(c);
  const std::lock_guard guard(lock_);
  asked_ -= bytes;
  use_.live_bytes -= size;
  try {
    cached_[c].push_back(block);
    use_.cached_bytes += size;
  } catch (const std::bad_alloc&) {  // no memory to record the block as free
    if (!keeps_) free_(block, size);
  }
}

void CachingAllocator::release_cache() {
  const std::lock_guard guard(lock_);
  release_cache_locked();
}

void CachingAllocator::release_cache_locked() {
  for (std::size_t c = 0; c < classes; ++c) {
    for (void* block : cached_[c]) free_(block, class_bytes(c));
    cached_[c].clear();
  }
  use_.cached_bytes = 0;
}

void CachingAllocator::reset_peak() {
  const std::lock_guard guard(lock_);
  use_.peak_bytes = use_.live_bytes;
}

MemoryUse CachingAllocator::use() const {
  const std::lock_guard guard(lock_);
  return use_;
}

std::shared_ptr<CachingAllocator> make_pool(CachingAllocator& all) {
  return std::make_shared<CachingAllocator>([&all](std::size_t bytes) { return all.allocate(bytes); },
                                            [&all](void* block, std::size_t bytes) { all.release(block, bytes); },
                                            true);
}

}  // namespace reel
