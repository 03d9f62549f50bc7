// The widths of a cell whose parameters are in a file.
#include "tasks/app/cell_weights.h"

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("size_of_weights: finds the widths, and makes no cell that trains more numbers than the file has") {
  CellType type = cell_type("lstm");
  std::int64_t made = 0, largest = 0;
  type.make = [&](std::int64_t input, std::int64_t hidden, const Settings& settings, Init& init) {
    ++made;
    largest = std::max(largest, hidden);
    return cell_type("lstm").make(input, hidden, settings, init);
  };
  const Settings settings("lstm", type.settings);
  Init init(1);
  TensorFile file;
  const auto cell = cell_type("lstm").make(3, 40, settings, init);
  for (const Parameter& p : cell->parameters()) file.tensors.emplace_back(p.name, p.value);
  const CellSize size = size_of_weights(type, settings, "f", file, {}, {});
  CHECK(size.input == 3);
  CHECK(size.hidden == 40);
  file.tensors.emplace_back("more", Tensor::zeros({2}));
  made = largest = 0;
  CHECK(contains(error_of([&] { (void)size_of_weights(type, settings, "f", file, {}, {}); }), "fits lstm at no size"));
  CHECK(made > 0);
  CHECK(largest == 40);  // 80, 160 and 320 are likely, too
}
