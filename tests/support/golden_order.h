// What texts that are compared with files depend on.
#pragma once

namespace reel::test {

/// A loop has its instructions in the order in which the compiler evaluates operands. The files have GCC's.
#ifdef __clang__
inline constexpr bool order_of_gcc = false;
#else
inline constexpr bool order_of_gcc = true;
#endif

}  // namespace reel::test
