// Reports out of memory where nothing can be caught: before main(), in a destructor, or while leaving a library.
#pragma once

namespace reel {

constexpr const char* out_of_memory_text =
    "out of memory. Hint: a smaller model or batch, --checkpoint-every, or a higher ulimit -v.";
/// Prints "PROGRAM: out of memory. Hint: ..." to stderr, without allocating.
void say_out_of_memory(const char* program) noexcept;

}  // namespace reel
