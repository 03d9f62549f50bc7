// Every cell learns: fifty training steps of build/bin/copying and adding, T = 50, bring the loss down.
#include <iterator>
#include <sstream>

#include "cells/cell.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("the mean loss of the last 10 of 50 steps is below that of the first 10, for every cell") {
  const TempDir dir;
  for (const CellType& type : cell_registry()) {
    for (const std::string task : {"copying", "adding"}) {
      CAPTURE(type.name);
      CAPTURE(task);
      const std::string out = dir / (type.name + "_" + task);
      // NRU as in its paper: at the default rate without clipping its loss jumps.
      const std::string optimizer = type.name == "nru" ? "--optimizer adam --clip-norm 1 " : "";
      const std::string options =
          optimizer +
          fmt::format(
              "--cell {} --hidden 16 --batch 20 --steps 50 --valid-every 10 --valid-size 10 --threads 1 --quiet "
              "--out {} {} 50",
              type.name, out, task == "copying" ? "--delay" : "--length");
      std::istringstream words(options);
      const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
      const Result r = run(task, arguments, dir.path, {"PATH=" + dir.path});  // no gnuplot: no pictures
      CAPTURE(r.err);
      REQUIRE(r.code == 0);
      const auto losses = train_losses(out);
      REQUIRE(losses.size() == 5);
      for (const std::string& loss : losses) CHECK(std::isfinite(std::stod(loss)));
      CHECK(std::stod(losses.back()) < std::stod(losses.front()));
    }
  }
}
