// The commands of docs/own-data.md, one after the other, as a user types them.
#include <algorithm>

#include "tasks/io/files.h"
#include "tests/support/pages.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("own-data.md: every command does what the page says") {
  const TempDir dir;
  make_tree(dir);
  const auto blocks = commands_of(REEL_SOURCE_DIR "/docs/own-data.md");
  REQUIRE(blocks.size() == 4);
  std::string output;
  for (const std::string& block : blocks) output += run_block(dir, block);
  // The rows that the page shows are the first of the file.
  const std::string page = read_file(REEL_SOURCE_DIR "/docs/own-data.md"), shown = "```\nchart,value,kind\n";
  const std::size_t rows = page.find(shown);
  REQUIRE(rows != std::string::npos);
  CHECK(read_file(dir / "data/control_charts.csv")
            .starts_with(page.substr(rows + 4, page.find("```", rows + 4) - rows - 4)));
  const std::string answers = read_file(dir / "answers.csv");
  CHECK(std::count(answers.begin(), answers.end(), '\n') == 601);
  CHECK(answers.starts_with("line,chart,kind,p(cyclic),"));
  CHECK(contains(output, "\n3001,2999,"));  // the last row's forecast
  CHECK(std::filesystem::exists(dir / "now.safetensors"));

  // The figures that the page stands for: charts are told apart, and the forecast is far below the spread of 0.23.
  const auto number = [&](const std::string& run, const std::string& name) {
    const std::string record = read_file(dir / run + "/run.json");
    const std::size_t at = record.find("\"" + name + "\"", record.find("\"test\""));
    REQUIRE(at != std::string::npos);
    return std::stod(record.substr(record.find(':', at) + 1));
  };
  CHECK(number("runs/charts", "accuracy") > 0.9);
  CHECK(number("runs/forecast", "rmse") < 0.06);
  CHECK(number("runs/cosine", "rmse") < 0.1);
}
