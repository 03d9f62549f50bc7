// Results do not depend on the number of threads: every cell and task, runs that are resumed on another number, and
// checkpoints of older versions, for which this was not so.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/cpu/threads/cores.h"
#include "cells/cell.h"
#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"
#include "tests/support/affinity.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

using Words = std::vector<std::string>;

Words small(const std::string& out, const std::string& steps, const std::string& threads, const Words& more = {}) {
  Words all{"--delay",      "5",  "--hidden",      "16", "--batch", "43", "--cell", "gru", "--steps", steps,
            "--valid-size", "12", "--valid-every", "10", "--out",   out,  "--quiet"};
  if (!threads.empty()) all.insert(all.end(), {"--threads", threads});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string checkpoint(const std::string& run) { return run + "/checkpoint.safetensors"; }

/// Are parameters and optimiser the same to the last bit?
bool same_end(const std::string& a, const std::string& b) {
  const TensorFile x = load_safetensors(checkpoint(a)), y = load_safetensors(checkpoint(b));
  return x.tensors.size() == y.tensors.size() && std::all_of(x.tensors.begin(), x.tensors.end(), [&](const auto& t) {
           return elements(t.second) == elements(y.at(t.first));
         });
}

nlohmann::json record(const std::string& run) { return nlohmann::json::parse(read_file(run + "/run.json")); }

}  // namespace

TEST_CASE("every cell and dtype: 1, 2, 3 and 16 threads give the same bits") {
  for (const CellType& type : cell_registry()) {
    for (const std::string dtype : {"f32", "f64"}) {
      CAPTURE(type.name);
      CAPTURE(dtype);
      const TempDir dir;
      const Words more{"--cell", type.name, "--hidden", "32", "--delay", "15", "--dtype", dtype};
      REQUIRE(run("copying", small(dir / "1", "3", "1", more), dir.path).code == 0);
      for (const std::string threads : {"2", "3", "16"}) {
        REQUIRE(run("copying", small(dir / threads, "3", threads, more), dir.path).code == 0);
        CHECK_MESSAGE(same_end(dir / "1", dir / threads), threads);
      }
    }
  }
}

TEST_CASE("a resumed run may use any number of threads") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "whole", "40", "1"), dir.path).code == 0);
  CHECK(run("copying", small(dir / "cut", "20", "3"), dir.path).code == 0);
  const Result resumed =
      run("copying", {"--resume", dir / "cut", "--steps", "40", "--quiet", "--threads", "2"}, dir.path);
  CHECK(resumed.code == 0);
  CHECK(resumed.err.empty());
  CHECK(same_end(dir / "whole", dir / "cut"));
  CHECK(record(dir / "cut")["threads"] == 2);
  CHECK(contains(read_file(dir / "cut/config.toml"), "threads = 2\n"));
}

TEST_CASE("--shards: other last digits, the same on any number of threads; a resumed run keeps it") {
  const TempDir dir;
  const Words eight{"--shards", "8"};
  CHECK(run("copying", small(dir / "2", "30", "1"), dir.path).code == 0);  // 43 rows: two shards
  CHECK(run("copying", small(dir / "8", "30", "1", eight), dir.path).code == 0);
  CHECK(!same_end(dir / "2", dir / "8"));
  CHECK(run("copying", small(dir / "cut", "10", "5", eight), dir.path).code == 0);
  CHECK(run("copying", {"--resume", dir / "cut", "--steps", "30", "--quiet"}, dir.path).code == 0);
  CHECK(same_end(dir / "8", dir / "cut"));
  CHECK(run("copying", small(dir / "explicit", "30", "2", {"--shards", "2"}), dir.path).code == 0);
  CHECK(same_end(dir / "2", dir / "explicit"));
  CHECK(run("copying", small(dir / "rows", "10", "2", {"--shards", "1024"}), dir.path).code == 0);  // one a row
  CHECK(run("copying", small(dir / "x", "10", "2", {"--shards", "-1"}), dir.path).code == 2);
}

TEST_CASE("a checkpoint of an older version, whose sums depended on the number of threads: a note") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "a", "20", ""), dir.path).code == 0);
  TensorFile file = load_safetensors(checkpoint(dir / "a"));
  file.metadata.erase("shards");
  file.metadata["threads"] = "2";
  save_safetensors(checkpoint(dir / "a"), file);
  const Result r = run("copying", {"--resume", dir / "a", "--steps", "30"}, dir.path);
  CHECK(r.code == 0);
  CHECK_MESSAGE(contains(r.err, "is of an older Reel, whose sums depended on the number of threads"), r.err);
  CHECK(run("copying", {"--resume", dir / "a", "--steps", "40", "--quiet"}, dir.path).err.empty());
}

TEST_CASE("threads: one for each core that the process may use, unless said otherwise") {
  const TempDir dir;
  CHECK(run("copying", small(dir / "all", "10", ""), dir.path).code == 0);
  CHECK(record(dir / "all")["threads"] == available_cores());
  const OneCore core;
  CHECK(run("copying", small(dir / "one", "10", ""), dir.path).code == 0);
  CHECK(record(dir / "one")["threads"] == 1);
  CHECK(run("copying", small(dir / "four", "10", "4"), dir.path).code == 0);
  CHECK(record(dir / "four")["threads"] == 4);
  CHECK(same_end(dir / "one", dir / "four"));
}
