// sweep: what later calls change, and what several calls at a time leave each other.
#include <chrono>
#include <thread>

#include "tests/support/sweeps.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

/// Waits until a file has a text; two minutes, as sanitizers and a busy machine slow programs down.
void wait_for(const std::string& file, const std::string& text) {
  const auto there = [&] { return fs::exists(file) && contains(read_file(file), text); };
  for (int i = 0; i < 12000 && !there(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(there());
}

}  // namespace

TEST_CASE("sweep: a call that ends after another one has extended the sweep reports all of it") {
  const TempDir dir, here, there;
  const std::string out = dir / "s";
  Child first("sweep", small_sweep("cell=lstm", out, "--jobs 1", "10000"), here.path);
  wait_for(out + "/sweep.json", "cell=lstm,s1");
  Child second("sweep", small_sweep("cell=lstm,gru", out, "--jobs 1", "10000"), there.path);
  wait_for(out + "/sweep.json", "cell=gru,s1");
  second.send(SIGKILL);
  second.wait();
  const Result r = first.wait();
  CAPTURE(r.err);
  CHECK(r.code == 0);  // what the other call has added is not left over
  CHECK_MESSAGE(contains(r.out, "1 of 2 runs done"), r.out);
  CHECK(contains(read_file(out + "/results.csv"), "\ngru,"));
  CHECK(contains(read_file(out + "/results.csv"), "\nlstm,"));
}
