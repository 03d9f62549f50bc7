// Arrays in .npy files, and as tables.
#include "tasks/data/arrays.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    const Array array = parse_npy("x", bytes);
    std::size_t elements = 1;
    for (const std::int64_t n : array.shape) elements *= static_cast<std::size_t>(n);
    check(array.values.size() == elements, "as many elements as the shape says");
    const Table table = table_of_array("x", array);
    check(table.rows * std::ssize(table.columns) == std::ssize(array.values), "each element is in a column");
  });
}
