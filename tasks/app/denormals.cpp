#include "tasks/app/denormals.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace reel {

bool flush_denormals([[maybe_unused]] bool on) {
#if defined(__SSE2__)
  constexpr unsigned bits = _MM_FLUSH_ZERO_MASK | 0x0040;  // of results, and of operands (DAZ)
  _mm_setcsr((_mm_getcsr() & ~bits) | (on ? bits : 0));
  return true;
#elif defined(__aarch64__)
  constexpr std::uint64_t bit = std::uint64_t{1} << 24;  // FZ
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  control = (control & ~bit) | (on ? bit : 0);
  asm volatile("msr fpcr, %0" ::"r"(control));
  return true;
#else
  return false;
#endif
}

}  // namespace reel
