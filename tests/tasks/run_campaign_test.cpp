// Campaigns of reproduce: what --hours counts, and runs that diverge as their rows expect.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/runner/pool.h"
#include "tasks/runner/results.h"
#include "tasks/runner/step_cost.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

struct Place {
  explicit Place(const std::string& presets) {
    fs::create_directories(dir / "presets");
    write_atomically(dir / "presets/mine.toml", presets);
  }
  Result reproduce(std::vector<std::string> words, const std::string& threads = "1") const {
    words.insert(words.end(), {"--runs", dir / "runs", "--results", dir / "results", "--threads", threads});
    return run("reproduce", words, dir.path, {"REEL_PRESETS=" + (dir / "presets")});
  }
  nlohmann::json costs() const { return nlohmann::json::parse(read_file(dir / "runs/costs.json")); }
  /// Has each preset cost so many seconds, and no run take what a stored one took.
  void set_costs(double seconds) const {
    nlohmann::json all = costs();
    for (auto& [name, cost] : all.items()) cost = seconds;
    write_atomically(dir / "runs/costs.json", all.dump());
    fs::remove_all(dir / "results");
  }
  /// The folder of the only run of a preset.
  std::string run_of(const std::string& preset) const {
    for (const auto& entry : fs::recursive_directory_iterator(dir / "runs"))
      if (entry.is_directory() && contains(entry.path(), "/" + preset + "-s1-")) return entry.path();
    return "";
  }
  TempDir dir;
};

const std::string one = R"toml([a]
title = "A"
task = "copying"
options = "--delay 2 --hidden 8 --batch 2 --valid-size 2 --steps 100 --valid-every 10"
metric = "valid_loss"
models.gru = "--cell gru"
)toml";

}  // namespace

TEST_CASE("reproduce --hours: what is left of a run is counted, and nothing of one that is kept") {
  const Place place(one);
  const Result first = place.reproduce({"mine/a", "--hours", "0.0000001"});
  CHECK(first.code == 0);
  CHECK_MESSAGE(contains(first.err, "0 of 1 runs fit in --hours 1e-07; the next one takes about "), first.err);
  REQUIRE(place.costs().size() == 1);

  for (const char* budget : {"0.5", "1"}) {
    REQUIRE(place.reproduce({"mine/a", "--budget", budget}).code == 0);
    place.set_costs(1000);
    const Result kept = place.reproduce({"mine/a", "--budget", budget, "--hours", "0.01"});
    CHECK(kept.code == 0);
    CHECK_MESSAGE(contains(kept.out, "(kept)"), kept.out);
    CHECK(kept.err.find("fit in") == std::string::npos);
    if (std::string(budget) == "0.5") fs::remove_all(place.run_of("gru"));
  }

  // as it was when a signal came behind update 90
  const std::string folder = place.run_of("gru");
  fs::remove(folder + "/run.json");
  const std::string metrics = read_file(folder + "/metrics.csv");
  write_atomically(folder + "/metrics.csv", metrics.substr(0, metrics.find("\n100,") + 1));
  place.set_costs(1000);
  const Result long_one = place.reproduce({"mine/a", "--hours", "0.02"});
  CHECK_MESSAGE(contains(long_one.err, "0 of 1 runs fit in --hours 0.02; the next one takes about 1:40"), long_one.err);
  CHECK_FALSE(fs::exists(folder + "/run.json"));
  place.set_costs(500);
  const Result fits = place.reproduce({"mine/a", "--hours", "0.02"});
  CHECK(fits.code == 0);
  CHECK_MESSAGE(fits.err.find("fit in") == std::string::npos, fits.err);
  CHECK(fs::exists(folder + "/run.json"));
}

TEST_CASE("reproduce --hours: another number of threads is measured by itself") {
  const Place place(one);
  for (const char* threads : {"1", "2", "1"}) place.reproduce({"mine/a", "--hours", "0.0000001"}, threads);
  CHECK(place.costs().size() == 2);
}

TEST_CASE("reproduce: a run that diverges as its row expects is no failure, and is not repeated") {
  const std::string diverging = R"toml(
title = "Diverging"
task = "adding"
options = "--length 5 --hidden 4 --batch 4 --valid-size 4 --steps 30 --valid-every 10"
metric = "valid_loss"
models.bad = "--cell rnn --lr 1e38"
)toml";
  const Place place("[expected]" + diverging + "expect.diverges = { bad = true }\n[surprise]" + diverging);
  const Result r = place.reproduce({"mine/expected"});
  CHECK_MESSAGE(r.code == 0, r.err);
  CHECK(contains(r.out, "1 of 1 diverged"));
  CHECK(contains(r.out, "1 pass, 0 fail"));
  CHECK_FALSE(contains(r.out, "failed:"));
  const std::string record = place.run_of("expected/bad") + "/run.json";
  REQUIRE(fs::exists(record));
  const auto before = fs::last_write_time(record);
  const Result again = place.reproduce({"mine/expected"});
  CHECK(again.code == 0);
  CHECK(contains(again.out, "1 pass, 0 fail"));
  CHECK(fs::last_write_time(record) == before);

  const Result other = place.reproduce({"mine/surprise"});
  CHECK(other.code == 1);
  CHECK(contains(other.out, "failed:"));
}

TEST_CASE("costs: several calls measure in one folder at a time, and none loses what another one adds") {
  const TempDir dir;
  const std::vector<std::string> options{"--delay=5", "--hidden=4", "--batch=2", "--valid-size=4", "--threads=1"};
  in_parallel(4, 4, [&](std::size_t i) {
    const StepCost cost = measure_step("copying", options, dir / "runs/cost", [] { return false; });
    add_cost(dir / "costs.json", fmt::format("{}", i), cost.of(100, 10));
  });
  CHECK(nlohmann::json::parse(read_file(dir / "costs.json")).size() == 4);
  CHECK(fs::is_empty(dir / "runs"));
  CHECK_FALSE(fs::exists(dir / "costs.json.lock"));
}

TEST_CASE("results: a run that diverged before its first validation has no curve of the run that it replaces") {
  const TempDir dir;
  Preset preset;
  preset.name = "a/b/c";
  preset.task = "copying";
  preset.measures = {{.metric = "best.valid_loss"}};
  PresetTable table;
  table.name = "a/b";
  table.presets = {preset};
  PresetRun run;
  run.measured = {0.5};
  run.updates = 10;
  run.date = "2026-02-28T09:15:00Z";
  run.curve = {{10, 20, 1, 0.5, 0.5, 0.5, 1}};
  store(table, {{preset, {run}}}, dir.path);
  CHECK(contains(read_file(curves_file(dir.path, "a/b")), "\na/b/c,1,10,20,"));
  run.diverged = true;
  run.problem = "diverged";
  run.curve.clear();
  store(table, {{preset, {run}}}, dir.path);
  CHECK(contains(read_file(numbers_file(dir.path, "a/b")), "diverged"));
  CHECK_FALSE(contains(read_file(curves_file(dir.path, "a/b")), "a/b/c"));
}
