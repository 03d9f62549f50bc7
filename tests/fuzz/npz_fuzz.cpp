// Archives of arrays, and x, y and lengths in them as sequences.
#include "tasks/data/arrays.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    const Table table = table_of_arrays("x", parse_npz("x", bytes));
    for (const Rows& s : table.sequences)
      check(s.first >= 0 && s.count >= 0 && s.first + s.count <= table.rows, "sequences lie in the table");
    for (const Column& column : table.columns) check(std::ssize(column.numbers) == table.rows, "each has each row");
  });
}
