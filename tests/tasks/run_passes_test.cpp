// --print-passes: what it prints is docs/06-lstm.md, to the letter; and it works in a run and in any program.
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The blocks of a page between ```passes and ```.
std::string blocks_of(const std::string& page) {
  std::string text;
  const std::string begin = "```passes\n", end = "```\n";
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    const std::size_t last = page.find(end, at);
    text += page.substr(at, last - at);
    at = last;
  }
  return text;
}

}  // namespace

TEST_CASE("the page of docs/06-lstm.md is what the program prints") {
  const std::string path = REEL_SOURCE_DIR "/docs/06-lstm.md";
  if (!std::filesystem::exists(path)) return;  // on a machine that has the programs alone
  const TempDir dir;
  const Result r = run("copying", {"--cell", "lstm", "--print-passes", "--dry-run"}, dir.path);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "total                         134666"));
  CHECK(r.err == blocks_of(read_file(path)));
  CHECK(!std::filesystem::exists(dir.path + "/runs"));
}

TEST_CASE("a run prints its loops once, and a later step nothing") {
  const TempDir dir;
  const std::vector<std::string> small{"--cell", "srnn", "--hidden", "8", "--length", "5", "--quiet", "--out"};
  const auto steps = [&](const std::string& n, const std::string& out) {
    std::vector<std::string> all{"--steps", n, "--valid-every", "1"};
    all.insert(all.end(), small.begin(), small.end());
    all.push_back(dir / out);
    return all;
  };
  const std::vector<std::string> on{"REEL_PRINT_PASSES=1"};
  const Result one = run("adding", steps("1", "a"), dir.path, on), ten = run("adding", steps("10", "b"), dir.path, on);
  CHECK(contains(one.err, "---- gradient of a scan"));
  CHECK(one.err == ten.err);
  CHECK(run("adding", steps("1", "c"), dir.path).err.empty());
  CHECK(!contains(read_file(dir.path + "/a/config.toml"), "passes"));
}
