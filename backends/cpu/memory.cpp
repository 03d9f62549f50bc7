// CPU memory: a block holds its Storage header in front of the elements, so that one allocation serves both.
#include <cblas.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/bf16_products.h"
#include "backends/cpu/kernels/openblas_kernels.h"
#include "backends/cpu/kernels/piece.h"
#include "backends/cpu/memory_limit.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {
constexpr std::size_t header = 64;  // keeps the elements aligned for the widest vector loads
static_assert(sizeof(Storage) <= header);

constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Requests huge pages for large blocks: stacked [T, ...] tensors are read over and over, and small pages would cost
/// many TLB misses.
void* system_memory(std::size_t bytes) {
  const std::size_t unit = bytes >= huge_page ? huge_page : header;
  bytes = (bytes + unit - 1) / unit * unit;
  void* block = std::aligned_alloc(unit, bytes);
  if (block && unit == huge_page) madvise(block, bytes, MADV_HUGEPAGE);  // only a hint: failure is harmless
  return block;
}
}  // namespace

Cpu::Cpu(bool bf16)
    : bf16_(bf16),
      limit_(cpu::memory_limit()),
      allocator_(
          system_memory, [](void* block, std::size_t) { std::free(block); }, false, limit_.bytes),
      groups_(interpret) {
  replace_fallback_kernels();
  openblas_set_num_threads(1);
  set_threads(1);
}

void Cpu::set_threads(int threads) {
  threads = std::max(threads, 1);
  const int members = std::min(threads, available_cores());
  static std::mutex reserving;
  static int reserved = 0;  // OpenBLAS keeps buffers of so many threads, which all CPU devices of a process share
  const int most = [&] {
    const std::lock_guard lock(reserving);
    return reserve_for_blas(members, reserved);
  }();
  constexpr const char* why = "OpenBLAS needs 135 MB of address space for the products of each thread";
  if (most == 0) throw OutOfMemory("cpu", fmt::format("{}; {}. Hint: a higher ulimit -v", why, limit_.text));
  if (most < members) warn("cpu", fmt::format("{} at work instead of {}: {}; {}", most, members, why, limit_.text));
  pool_.resize(threads, std::min(members, most));
}

Storage* Cpu::allocate(std::size_t bytes) {
  void* block = allocator_.allocate(header + bytes);
  if (!block)
    throw OutOfMemory("cpu", fmt::format("{} are needed beside {} in use, {}", memory_text(static_cast<double>(bytes)),
                                         memory_text(static_cast<double>(memory().live_bytes)), limit_.text));
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
      const bool bf16 = rest == ",bf16";
      if (!rest.empty() && !bf16)
        throw Error("device", "there are \"cpu\" and, with faster products, \"cpu,bf16\", got \"cpu" + rest + "\"");
      const std::string missing = bf16 ? bf16::missing() : "";
      if (!missing.empty())
        throw Error("device", "\"cpu,bf16\" rounds products of f32 to bf16 by oneDNN, but " + missing);
      auto cpu = std::make_unique<Cpu>(bf16);
      static std::vector<Cpu*>& made = *new std::vector<Cpu*>;
      static const pid_t owner = getpid();
      if (made.empty()) {
        std::atexit([] {
          if (getpid() != owner) return;  // a forked child must not end its parent's compiler
          for (Cpu* c : made) c->stop_compiling();
        });
      }
      made.push_back(cpu.get());
      return cpu;
    });

}  // namespace reel::cpu
