#include "tests/emulator/memory.h"
#include "tests/support/sanitizers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef REEL_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(first, bytes) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(first, bytes) (void)0
#endif

namespace cuda_emulator {

const std::size_t Memory::bytes = [] {
  const char* const mebibytes = std::getenv("REEL_EMULATOR_MEMORY");
  return static_cast<std::size_t>(mebibytes ? std::atoi(mebibytes) : 8192) << 20;
}();

Memory::Memory() {
  void* const range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(range);
  madvise(range, bytes, MADV_HUGEPAGE);  // fewer pages to open and close, where there are no keys
  key_ = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  if (key_ >= 0 && pkey_mprotect(base_, bytes, PROT_READ | PROT_WRITE, key_) != 0) std::abort();
}

void* Memory::take(std::size_t wanted) {
  // Behind a block there is a gap, which nobody may touch.
  const auto room_of = [](std::size_t n) { return (n + alignment - 1) / alignment * alignment + alignment; };
  const std::size_t room = room_of(wanted);
  std::size_t at = 0;
  for (const auto& [first, size] : blocks_) {
    if (first - at >= room) break;
    at = first + room_of(size);
  }
  if (at > bytes || bytes - at < room) return nullptr;
  blocks_[at] = wanted;
  taken_ += wanted;
  ASAN_POISON_MEMORY_REGION(base_ + at, room);
  ASAN_UNPOISON_MEMORY_REGION(base_ + at, wanted);
  const Access access(*this);
  std::memset(base_ + at, 0xff, wanted);
  return base_ + at;
}

bool Memory::give_back(void* block) {
  const auto found = blocks_.find(place_of(block));
  if (!inside(block) || found == blocks_.end()) return false;
  ASAN_POISON_MEMORY_REGION(block, found->second);
  taken_ -= found->second;
  blocks_.erase(found);
  return true;
}

void Memory::open() {
  if (opened_++ > 0) return;
  if (key_ >= 0)
    pkey_set(key_, 0);
  else if (mprotect(base_, bytes, PROT_READ | PROT_WRITE) != 0)
    std::abort();
}
void Memory::close() {
  if (--opened_ > 0) return;
  if (key_ >= 0)
    pkey_set(key_, PKEY_DISABLE_ACCESS);
  else if (mprotect(base_, bytes, PROT_NONE) != 0)
    std::abort();
}

}  // namespace cuda_emulator
