// IDX files of pictures and of labels, plain and packed.
#include "tasks/data/idx.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  for (const int rank : {1, 3}) {
    takes([&] {
      const Idx idx = parse_idx("mnist", "x", bytes, rank);
      std::size_t elements = 1;
      for (const std::int64_t n : idx.shape) elements *= static_cast<std::size_t>(n);
      check(idx.values.size() == elements && std::ssize(idx.shape) == rank, "as many elements as the shape says");
    });
  }
}
