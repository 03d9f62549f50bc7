// The programs of bench/: what they refuse before they measure, and what they say of it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Programs of a GPU are there in builds with CUDA only.
bool built(const std::string& program) { return std::filesystem::exists(std::string(REEL_BIN_DIR "/") + program); }

}  // namespace

TEST_CASE("benchmarks: bad usage is a line, and nothing is measured") {
  const TempDir dir;
  const auto says = [&](const std::string& program, const std::vector<std::string>& words, const std::string& text) {
    if (!built(program)) return;
    const Result r = run(program, words, dir.path);
    CAPTURE(program);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK_MESSAGE(r.err.starts_with(program + ": " + text), r.err);
  };
  for (const char* program : {"bench_ranks", "bench_barriers"}) says(program, {"--bogus"}, "");
  for (const char* program : {"bench_steps", "bench_predict"})
    for (const char* cells : {"bogus", "lstm,bogus", ""}) says(program, {"--cells", cells}, "--cells: ");
  says("bench_steps", {"--cells", "lstm,r_transformer", "--hidden", "6"},
       "--cells r_transformer, --hidden 6: the number");
  says("bench_cells", {"--cells", "bogus"}, "--cells \"bogus\": there is no cell \"bogus\"");
  says("bench_cells", {"--cells", "lstm,srnn/bogus=1"}, "--cells \"srnn/bogus=1\": srnn.bogus: ");
  says("bench_cells", {"--cells", ","}, "--cells \"\": ");
  says("bench_tape", {"--filter", "("}, "--filter \"(\": ");
  says("bench_loops", {"--device", "cpu"}, "--device cpu: is no GPU. Hint: --device cuda");
  says("bench_loops", {"--sizes", "bogus:4x32"}, "--sizes \"bogus:4x32\": there is no cell \"bogus\"");
  const Result json = run("bench_cells", {"--json", dir / "none/rows.json"}, dir.path);
  CHECK(json.code == 1);
  CHECK(json.out.empty());
  CHECK(contains(json.err, "none/rows.json"));
}

TEST_CASE("benchmarks: --help and --version, also of those without options of their own") {
  const TempDir dir;
  for (const std::string program : {"bench_ranks", "bench_barriers"}) {
    if (!built(program)) continue;
    CHECK(contains(run(program, {"--help"}, dir.path).out, "Usage: " + program));
    const Result version = run(program, {"--version"}, dir.path);
    CHECK(version.code == 0);
    CHECK(std::count(version.out.begin(), version.out.end(), '\n') == 1);
  }
}

TEST_CASE("bench_loops without a GPU names the device as it was typed, and points to no other one") {
  const TempDir dir;
  if (!built("bench_loops")) return;
  const Result r = run("bench_loops", {"--sizes", "lstm:4x32", "--time", "4", "--rounds", "1"}, dir.path);
  if (r.code == 0) return;
  CHECK(r.err.starts_with("bench_loops: --device cuda: "));
  CHECK_MESSAGE(r.err.ends_with(". bench_loops needs one\n"), r.err);
  CHECK(!contains(r.err, ",loops"));
}

TEST_CASE("bench_cells: the peak of a row is its own, whatever ran before") {
  const TempDir dir;
  const Result r = run("bench_cells",
                       {"--cells", "lstm", "--shapes", "12x4x64,12x4x8", "--threads", "1,2", "--budget", "0", "--json",
                        dir / "rows.json"},
                       dir.path);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(contains(r.out, "speed-up"));
  const auto rows = nlohmann::json::parse(read_file(dir / "rows.json"))["rows"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[2]["peak_mb"] > 0);
  CHECK(rows[2]["peak_mb"] < rows[0]["peak_mb"]);
}

TEST_CASE("bench_ops says how large its tensors are") {
  const TempDir dir;
  const Result r = run("bench_ops", {"--elements", "3000", "--rounds", "1"}, dir.path);
  CHECK(r.code == 0);
  CHECK(contains(r.out, ", large tensors of 2048 numbers\n"));
}
