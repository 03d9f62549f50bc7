// --precision bf16 of the CPU, in whole runs.
#include <cmath>
#include <string>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

Result train(const TempDir& dir, const std::string& out, const std::vector<std::string>& more,
             const std::vector<std::string>& environment = {}) {
  std::vector<std::string> all{"--cell",       "gru", "--hidden", "128",   "--batch",       "40",
                               "--length",     "20",  "--steps",  "6",     "--valid-every", "2",
                               "--valid-size", "40",  "--quiet",  "--out", dir / out};
  all.insert(all.end(), more.begin(), more.end());
  return run("adding", all, dir.path, environment);
}

/// False, with a message: this build or processor cannot.
bool possible(const TempDir& dir) {
  const Result r = run("adding", {"--precision", "bf16", "--dry-run"}, dir.path);
  if (r.code == 0) return true;
  CHECK(r.code == 2);
  CHECK_MESSAGE(contains(r.err, "adding: --precision bf16: "), r.err);
  CHECK_MESSAGE(contains(r.err, "Hint: "), r.err);
  MESSAGE("skipped: " << r.err);
  return false;
}

}  // namespace

TEST_CASE("a run in bf16 is near one in f32, and says what it is") {
  const TempDir dir;
  if (!possible(dir)) return;
  REQUIRE(train(dir, "f32", {"--threads", "1"}).code == 0);
  const Result r = train(dir, "bf16", {"--threads", "1", "--precision", "bf16"});
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const auto plain = train_losses(dir / "f32"), half = train_losses(dir / "bf16");
  REQUIRE(plain.size() == half.size());
  CHECK(plain != half);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double loss = std::stod(plain[i]);
    CHECK(std::abs(std::stod(half[i]) - loss) < 0.01 * loss);
  }
  CHECK(contains(read_file(dir / "bf16/run.json"), "\"device\": \"cpu,bf16\""));
  CHECK(contains(read_file(dir / "f32/run.json"), "\"device\": \"cpu\""));
}

TEST_CASE("a run in bf16 has the same bits again, on more threads, as a device, and when it is resumed") {
  const TempDir dir;
  if (!possible(dir)) return;
  REQUIRE(train(dir, "one", {"--threads", "1", "--precision", "bf16"}).code == 0);
  const auto losses = train_losses(dir / "one");
  REQUIRE(train(dir, "two", {"--threads", "2", "--precision", "bf16"}).code == 0);
  CHECK(losses == train_losses(dir / "two"));
  const Result device = train(dir, "device", {"--threads", "1", "--device", "cpu,bf16"});
  REQUIRE_MESSAGE(device.code == 0, device.err);
  CHECK(losses == train_losses(dir / "device"));
  REQUIRE(train(dir, "half", {"--threads", "1", "--precision", "bf16", "--steps", "4"}).code == 0);
  const Result r = run("adding", {"--resume", dir / "half", "--steps", "6", "--quiet"}, dir.path);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(losses == train_losses(dir / "half"));
}

TEST_CASE("what cannot be is refused in one line") {
  const TempDir dir;
  const Result tf32 = train(dir, "tf32", {"--precision", "tf32"});
  CHECK(tf32.code == 2);
  CHECK_MESSAGE(contains(tf32.err, "--precision tf32: on cpu products of f32 are f32 or bf16. Hint: --precision bf16"),
                tf32.err);
  const Result both = train(dir, "both", {"--device", "cpu,bf16", "--precision", "f32"});
  CHECK(both.code == 2);
  CHECK_MESSAGE(contains(both.err, "--precision f32: --device cpu,bf16 is for products in bf16. Hint: leave out one"),
                both.err);
  if (!possible(dir)) return;
  // oneDNN is told to do as on an older processor.
  const Result old = train(dir, "old", {"--precision", "bf16"}, {"DNNL_MAX_CPU_ISA=AVX512_CORE"});
  CHECK(old.code == 2);
  CHECK_MESSAGE(contains(old.err, "this processor has neither AVX512-BF16 nor AMX"), old.err);
  CHECK_MESSAGE(contains(old.err, "Hint: \"cpu\" multiplies in f32, which is --precision f32"), old.err);
  // A library that is none: f32 does not need it.
  write_atomically(dir / "libdnnl.so.2", "not a library");
  const std::vector<std::string> damaged{"LD_LIBRARY_PATH=" + dir.path};
  CHECK(train(dir, "without", {}, damaged).code == 0);
  const Result none = train(dir, "none", {"--precision", "bf16"}, damaged);
  CHECK(none.code == 2);
  CHECK_MESSAGE(contains(none.err, "adding: --precision bf16: "), none.err);
  CHECK_MESSAGE(contains(none.err, "cannot be opened"), none.err);
  CHECK_MESSAGE(contains(none.err, "Hint: install libdnnl2, or take \"cpu\", which is --precision f32"), none.err);
}
