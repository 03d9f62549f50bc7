#include "bench/cuda/barriers.h"
#include "tasks/app/run.h"

void reel::bench::write_line(const std::string& line) {
  write_out(line);
  flush_out();
}

int main(int argc, char** argv) {
  return reel::run_program("bench_barriers", [&] {
    reel::Options options("bench_barriers", "What barriers between blocks, fetches and graph nodes cost on a GPU.");
    options.parse(argc, argv);
    return reel::bench::measure_barriers();
  });
}
