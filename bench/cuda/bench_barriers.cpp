#include "bench/cuda/barriers.h"
#include "tasks/io/output.h"

void reel::bench::write_line(const std::string& line) {
  write_out(line);
  flush_out();
}

int main() { return reel::bench::measure_barriers(); }
