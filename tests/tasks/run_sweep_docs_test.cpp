// The commands of docs/sweeps.md, one after the other, as a user types them.
#include <algorithm>

#include "tests/support/pages.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("sweeps.md: every command does what the page says") {
  const TempDir dir;
  make_tree(dir);
  const auto blocks = commands_of(REEL_SOURCE_DIR "/docs/sweeps.md");
  REQUIRE(blocks.size() == 3);
  CHECK(contains(run_block(dir, blocks[0]), "12 of 12 runs done\n"));
  CHECK(std::filesystem::exists(dir / "sweeps/rates/runs/cell=lstm,lr=1e-2,s1/run.json"));
  CHECK(read_file(dir / "sweeps/rates/results.csv").starts_with("cell,lr,valid_loss_mean,"));
  const std::string more = run_block(dir, blocks[1]);
  CHECK(contains(more, "12 of 12 runs done\n"));
  CHECK(contains(more, "24 of 24 runs done\n"));
  const std::string search = run_block(dir, blocks[2]);
  CHECK(contains(search, "1 of 9 runs done, 8 dropped\n"));
  CHECK(contains(search, "3 of 3 runs done\n"));
}
