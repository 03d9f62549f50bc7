#include "engine/device/recorder.h"

#include <cstdlib>

#include "engine/core/error.h"

namespace reel {

Storage* Recorder::allocate(std::size_t bytes) {
  auto* const data = static_cast<std::byte*>(std::calloc(bytes + 1, 1));  // pages that nobody touches cost nothing
  if (!data)
    throw OutOfMemory("memory", fmt::format("{} for planning a loop", memory_text(static_cast<double>(bytes))));
  Storage& block = blocks_[data];
  block.backend = this, block.data = data, block.bytes = bytes;
  return &block;
}

const Storage* Recorder::block_of(const void* address) const {
  const auto next = blocks_.upper_bound(static_cast<const std::byte*>(address));
  if (next == blocks_.begin()) return nullptr;
  const Storage& block = std::prev(next)->second;
  return static_cast<const std::byte*>(address) <= block.data + block.bytes ? &block : nullptr;
}

Recorder::~Recorder() {
  for (const auto& [data, block] : blocks_) std::free(block.data);
}

}  // namespace reel
