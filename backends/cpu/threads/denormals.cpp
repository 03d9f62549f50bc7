#include "backends/cpu/threads/denormals.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace reel {

#if defined(__SSE2__)

namespace {
constexpr unsigned bits = _MM_FLUSH_ZERO_MASK | 0x0040;  // of results, and of operands (DAZ)
}  // namespace

bool flush_denormals(bool on) {
  _mm_setcsr((_mm_getcsr() & ~bits) | (on ? bits : 0));
  return true;
}

bool flushes_denormals() { return (_mm_getcsr() & bits) == bits; }

#elif defined(__aarch64__)

namespace {

constexpr std::uint64_t bit = std::uint64_t{1} << 24;  // FZ

std::uint64_t control() {
  std::uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}

}  // namespace

bool flush_denormals(bool on) {
  const std::uint64_t value = (control() & ~bit) | (on ? bit : 0);
  asm volatile("msr fpcr, %0" ::"r"(value));
  return true;
}

bool flushes_denormals() { return (control() & bit) != 0; }

#else

bool flush_denormals(bool) { return false; }

bool flushes_denormals() { return false; }

#endif

}  // namespace reel
