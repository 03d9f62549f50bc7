// Memory: a block holds its own Storage header in front of the elements, so that one call gets both.
#include <cblas.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/cpu/cpu.h"
#include "engine/error.h"

namespace reel::cpu {

namespace {
constexpr std::size_t header = 64;  // keeps the elements aligned for the widest vector loads
static_assert(sizeof(Storage) <= header);

constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Large blocks ask for huge pages: a slab is walked once and again, and small pages would each be looked up anew.
void* system_memory(std::size_t bytes) {
  const std::size_t unit = bytes >= huge_page ? huge_page : header;
  bytes = (bytes + unit - 1) / unit * unit;
  void* block = std::aligned_alloc(unit, bytes);
  if (block && unit == huge_page) madvise(block, bytes, MADV_HUGEPAGE);  // without which all works as well
  return block;
}
}  // namespace

Cpu::Cpu() : allocator_(system_memory, [](void* block, std::size_t) { std::free(block); }) {
  openblas_set_num_threads(1);
}

Storage* Cpu::allocate(std::size_t bytes) {
  void* block = allocator_.allocate(header + bytes);
  if (!block) {
    throw Error("cpu",
                fmt::format("out of memory: {} bytes were asked for, {} are in use", bytes, memory().live_bytes));
  }
  auto* storage = new (block) Storage;
  storage->backend = this;
  storage->data = static_cast<std::byte*>(block) + header;
  storage->bytes = bytes;
  return storage;
}

void Cpu::release(Storage* storage) {
  const std::size_t bytes = storage->bytes;
  storage->~Storage();
  allocator_.release(storage, header + bytes);
}

void Cpu::read(void* host, const void* device, std::size_t bytes) {
  if (bytes) std::memcpy(host, device, bytes);
}
void Cpu::write(void* device, const void* host, std::size_t bytes) {
  if (bytes) std::memcpy(device, host, bytes);
}

[[maybe_unused]] static const bool registered =
    register_backend("cpu", [](const std::string& rest) -> std::unique_ptr<Backend> {
      if (!rest.empty()) throw Error("device", "there is one cpu, called \"cpu\", got \"cpu" + rest + "\"");
      return std::make_unique<Cpu>();
    });

}  // namespace reel::cpu
