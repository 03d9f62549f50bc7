// memcpy for short rows, where a library call costs more than the copy itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace reel::cpu {

/// Copies contiguous bytes one register at a time; the last register overlaps the one before.
inline void copy_bytes(const void* in, void* out, std::size_t bytes) {
  using Some [[gnu::vector_size(32)]] = std::uint8_t;
  constexpr std::size_t some = sizeof(Some), many = 2048;
  if (bytes < some || bytes > many) {
    std::memcpy(out, in, bytes);
    return;
  }
  const auto move = [&](std::size_t at) {
    Some v;
    std::memcpy(&v, static_cast<const std::byte*>(in) + at, some);
    std::memcpy(static_cast<std::byte*>(out) + at, &v, some);
  };
  for (std::size_t at = 0; at + some <= bytes; at += some) move(at);
  move(bytes - some);
}

}  // namespace reel::cpu
