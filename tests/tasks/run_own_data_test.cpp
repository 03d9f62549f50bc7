// The commands of docs/own-data.md, one after the other, as a user types them.
#include <sstream>

#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The blocks of commands of a page.
std::vector<std::string> commands_of(const std::string& path) {
  std::istringstream page(read_file(path));
  std::vector<std::string> blocks;
  bool within = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```sh") {
      blocks.emplace_back();
      within = true;
    } else if (line == "```") {
      within = false;
    } else if (within) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("own-data.md: every command does what the page says") {
  const TempDir dir;
  std::filesystem::create_directory(dir / "build");
  std::filesystem::create_directory_symlink(REEL_BIN_DIR, dir / "build/bin");
  std::filesystem::create_directory_symlink(REEL_SOURCE_DIR "/scripts", dir / "scripts");
  const auto blocks = commands_of(REEL_SOURCE_DIR "/docs/own-data.md");
  REQUIRE(blocks.size() == 4);
  std::string output;
  for (const std::string& block : blocks) {
    CAPTURE(block);
    write_atomically(dir / "block.sh", block);
    const std::string command = "cd " + dir.path + " && bash -euo pipefail block.sh >out 2>err";
    const int code = std::system(command.c_str());
    const std::string said = read_file(dir / "out");
    output += said;
    CAPTURE(said);
    CAPTURE(read_file(dir / "err"));
    REQUIRE(code == 0);
  }
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
