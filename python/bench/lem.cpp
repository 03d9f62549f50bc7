// The training step of lem.py with the cell of examples/own_cell/lem.cpp, without Python: the same loss, gradient and
// sizes. lem T B N REPETITIONS prints the median of its processor time in milliseconds.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cells/cell.h"
#include "engine/autodiff/tape.h"
#include "ops/ops.h"

namespace {
double milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}
}  // namespace

int main(int argc, char** argv) {
  using namespace reel;
  if (argc != 5) return std::fprintf(stderr, "usage: lem T B N REPETITIONS\n"), 2;
  const std::int64_t T = std::atol(argv[1]), B = std::atol(argv[2]), n = std::atol(argv[3]), count = std::atol(argv[4]);
  backend().set_threads(1);
  const CellType& type = cell_type("lem");
  Init init(1, DType::f32);
  const auto cell = type.make(8, n, Settings("lem", type.settings, {}), init);
  Tensors parameters;
  for (const Parameter& p : cell->parameters()) parameters.push_back(p.value);
  const Tensor xs = normal({T, B, 8}, 0, 1, 2, 0);
  std::vector<double> times;
  for (std::int64_t i = 0; i < count; ++i) {
    const double start = milliseconds();
    {
      Tape tape;
      grad({sum(square(scan(*cell, cell->initial(B), xs).hs))}, parameters);
    }
    times.push_back(milliseconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  std::printf("%.3f\n", times[static_cast<std::size_t>(count / 2)]);
  return 0;
}
