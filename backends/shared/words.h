// Elements as words of their size, for kernels that only move them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace reel {

/// An element of 16 bytes that is only moved.
struct Word16 {
  std::uint64_t low, high;
};
/// Calls f with std::type_identity<T>, T a type of that many bytes. Throws if no dtype has that size.
template <class F>
decltype(auto) dispatch_width(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::type_identity<std::uint8_t>{});
    case 4:
      return f(std::type_identity<std::uint32_t>{});
    case 8:
      return f(std::type_identity<std::uint64_t>{});
    case 16:
      return f(std::type_identity<Word16>{});
    default:
      throw std::logic_error("reel: internal: elements of 1, 4, 8 or 16 bytes expected");
  }
}

}  // namespace reel
