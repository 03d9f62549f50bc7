// Reports out of memory where nothing can be caught: before main(), in a destructor, or while leaving a library.
#pragma once

namespace reel {

/// Prints "PROGRAM: out of memory. Hint: ..." to stderr, without allocating.
void say_out_of_memory(const char* program) noexcept;

}  // namespace reel
