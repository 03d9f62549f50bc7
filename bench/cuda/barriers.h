// Measures what the parts of a loop's kernel cost on a GPU. Without fmt, which nvcc does not take.
#pragma once
#include <string>

namespace reel::bench {

/// Prints each line of the result as it is known; returns the program's exit code, 77 where there is no GPU.
int measure_barriers();
/// Prints a line, by the program's own means.
void write_line(const std::string& line);

}  // namespace reel::bench
