// scripts/prepare-data: what is damaged stays out, what is missing is told; nothing half done is left.
#include <array>
#include <cstdio>

#include "tests/check.h"
#include "tests/child.h"
#include "tests/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The script's exit code and all that it says.
Result prepare(const std::string& arguments) {
  FILE* pipe = popen((REEL_SOURCE_DIR "/scripts/prepare-data " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  Result r;
  std::array<char, 4096> block;
  for (std::size_t n = 0; (n = fread(block.data(), 1, block.size(), pipe)) > 0;) r.out.append(block.data(), n);
  const int status = pclose(pipe);
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return r;
}

}  // namespace

TEST_CASE("prepare-data: usage, an empty source, a file with another sum, a set that is there") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "from/deep");
  const std::string from_to = dir / "from" + " " + (dir / "to");
  CHECK(prepare("").code == 2);
  CHECK(prepare(dir / "nowhere " + (dir / "to")).code == 2);
  Result r = prepare(from_to);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "music: no Nottingham.mat below " + dir.path));
  CHECK(contains(r.out, "none of the data sets is below"));

  write_atomically(dir / "from/deep/Nottingham.mat", "not what it was");
  r = prepare(from_to);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "from/deep/Nottingham.mat: its sha256 is not d154f7ca"));
  CHECK(std::filesystem::is_empty(dir / "to"));

  std::filesystem::create_directory(dir / "to/music");
  std::filesystem::remove(dir / "from/deep/Nottingham.mat");
  r = prepare(from_to);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "music: is there already"));
}
