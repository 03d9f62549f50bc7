#include "backends/shared/allocator.h"

#include <algorithm>
#include <bit>

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

void CachingAllocator::count_in_use(std::size_t bytes, std::size_t size) {
  asked_ += bytes;
  use_.live_bytes += size;
  use_.peak_bytes = std::max(use_.peak_bytes, use_.live_bytes);
}

void* CachingAllocator::cached_block(std::size_t bytes, std::size_t c) {
  const std::lock_guard guard(lock_);
  if (cached_[c].empty()) return nullptr;
  void* const block = cached_[c].back();
  cached_[c].pop_back();
  use_.cached_bytes -= class_bytes(c);
  count_in_use(bytes, class_bytes(c));
  return block;
}

void* CachingAllocator::system_block(std::size_t bytes, std::size_t size) {
  {
    const std::lock_guard guard(lock_);
    const std::size_t held = asked_ + use_.cached_bytes;
    if (held > limit_ || bytes > limit_ - held) return nullptr;
    ++use_.system_calls;
  }
  void* const block = raw_(size);
  if (!block) return nullptr;
  const std::lock_guard guard(lock_);
  count_in_use(bytes, size);
  return block;
}

void* CachingAllocator::allocate(std::size_t bytes) {
  const std::size_t c = class_of(bytes), size = class_bytes(c);
  if (void* const block = cached_block(bytes, c)) return block;
  const std::lock_guard guard(system_);
  void* block = system_block(bytes, size);
  if (!block && !keeps_) {
    free_cache();
    block = system_block(bytes, size);
  }
  return block;
}

void CachingAllocator::release(void* block, std::size_t bytes) {
  const std::size_t c = class_of(bytes), size = class_bytes(c);
  {
    const std::lock_guard guard(lock_);
    asked_ -= bytes;
    use_.live_bytes -= size;
    try {
      cached_[c].push_back(block);
      use_.cached_bytes += size;
      return;
    } catch (const std::bad_alloc&) {  // no memory to record the block as free
    }
  }
  if (!keeps_) free_(block, size);
}

void CachingAllocator::release_cache() {
  const std::lock_guard guard(system_);
  free_cache();
}

void CachingAllocator::free_cache() {
  decltype(cached_) blocks;
  {
    const std::lock_guard guard(lock_);
    blocks.swap(cached_);
    use_.cached_bytes = 0;
  }
  for (std::size_t c = 0; c < classes; ++c) {
    for (void* block : blocks[c]) free_(block, class_bytes(c));
  }
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
