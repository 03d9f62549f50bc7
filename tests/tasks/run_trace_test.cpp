// --trace-kernels: the table of a step and of a run, whose results stay the same.
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("a training step's kernels, with calls and sizes") {
  const TempDir dir;
  const Result r = run("copying",
                       {"--cell", "lstm", "--hidden", "32", "--batch", "4", "--length", "5", "--threads", "1",
                        "--trace-kernels", "--dry-run"},
                       dir.path);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "calls"));
  CHECK(contains(r.out, "us each"));
  // In each time step the state is multiplied by the weights of four gates.
  CHECK(contains(r.out, "gemm             f32 4x32 32x32"));
  CHECK(!contains(r.out, "random"));  // initial values
  CHECK(contains(r.out, "fused"));
  CHECK(!std::filesystem::exists(dir.path + "/runs"));
}

TEST_CASE("a run with a trace trains as one without") {
  const TempDir dir;
  const auto train = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{"--cell",        "srnn", "--hidden", "8",         "--length", "6",     "--steps", "12",
                                 "--valid-every", "4",    "--quiet",  "--threads", "2",        "--out", dir / out};
    all.insert(all.end(), more.begin(), more.end());
    return run("adding", all, dir.path);
  };
  const Result plain = train("a", {}), traced = train("b", {"--trace-kernels"});
  CHECK(plain.code == 0);
  CHECK(traced.code == 0);
  CHECK(!contains(plain.out, "us each"));
  CHECK(contains(traced.out, "update           f32"));
  CHECK(train_losses(dir / "a") == train_losses(dir / "b"));
  CHECK(!contains(read_file(dir.path + "/b/config.toml"), "trace"));
}
