// Out of memory where nothing can be caught: before main(), in a destructor, on the way out of a library.
#pragma once

namespace reel {

/// "PROGRAM: out of memory. Hint: ..." on stderr, without asking for memory.
void say_out_of_memory(const char* program) noexcept;

}  // namespace reel
