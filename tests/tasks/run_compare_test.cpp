// compare: what title and legend say of runs of one task, and of several.
#include <cstdlib>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("compare: the task is the title if all runs have the same, and in the legend if they do not") {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) return;
  const TempDir dir;
  for (const std::string task : {"adding", "copying"})
    for (const std::string cell : {"gru", "lstm"})
      REQUIRE(run(task,
                  {"--cell", cell, "--hidden", "4", "--batch", "2", "--valid-size", "2", "--steps", "4",
                   "--valid-every", "2", "--threads", "1", "--quiet", "--out", dir / (task + cell)},
                  dir.path)
                  .code == 0);
  const auto svg = [&](const std::string& second, std::vector<std::string> more = {}) {
    const std::string out = dir / "figure.svg";
    more.insert(more.begin(), {dir / "addinggru", dir / second, "--out", out});
    REQUIRE(run("compare", more, dir.path).code == 0);
    return read_file(out);
  };
  const std::string same = svg("addinglstm"), different = svg("copyinggru");
  CHECK(contains(same, ">adding<"));
  CHECK_FALSE(contains(same, "adding, "));
  CHECK_FALSE(contains(different, ">adding<"));
  CHECK(contains(different, "adding, gru"));
  CHECK(contains(different, "copying, gru"));
  CHECK_FALSE(contains(svg("copyinggru", {"--names", "a,b"}), "adding"));
}
