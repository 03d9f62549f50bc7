// sweep through the real programs: what runs are compared by, runs that diverge, and budgets of time.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/installed.h"
#include "tests/support/sweeps.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

TEST_CASE("sweep --halving: a metric that only metrics.csv has is the last one there") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const Result r = place.sweep(small_sweep("lr=1e-2,1e-3", out, "--halving 2 --metric grad_norm", "80"));
  CAPTURE(r.out);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "1 of 2 runs done, 1 dropped\n"));
  std::istringstream table(read_file(out + "/results.csv"));
  int found = 0;
  for (std::string line; std::getline(table, line);) {
    const Words row = fields(line);
    if (row[0] == "lr") continue;
    ++found;
    const std::string metrics = read_file(fmt::format("{}/runs/lr={},s1/metrics.csv", out, row[0]));
    const std::size_t last = metrics.rfind('\n', metrics.size() - 2) + 1;
    const Words end = fields(metrics.substr(last, metrics.size() - 1 - last));
    CHECK(std::stod(row[1]) == std::stod(end.at(6)));
    CHECK(row[7] == end.at(0));
  }
  CHECK(found == 2);
}

TEST_CASE("sweep: a metric that no run has is told with a near one, and replaces no results") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const Result r = place.sweep(small_sweep("lr=1e-2,1e-3", out, "--metric vaild_loss"));
  CHECK(r.code == 1);
  CHECK_MESSAGE(contains(r.out, "failed: lr=1e-2,s1: has no vaild_loss. Hint: valid_loss.\n"), r.out);
  REQUIRE(place.sweep({out, "--metric", "valid_loss"}).code == 0);
  const auto files = [&] {
    std::map<std::string, std::string> all;
    for (const char* name : {"results.csv", "results.md", "report.html", "sweep.json"})
      all[name] = read_file(out + "/" + name);
    return all;
  };
  const auto before = files();
  for (const auto& [metric, near] : {std::pair{"vaild_loss", "valid_loss"},
                                     {"best.vaild_loss", "best.valid_loss"},
                                     {"solved_at.stp", "solved_at.step"},
                                     {"grad_nrom", "grad_norm"}})
    for (const Words& line : {Words{out, "--metric", metric}, Words{out, "--gather", "--metric", metric},
                              small_sweep("lr=1e-2,1e-3", out, std::string("--metric ") + metric)}) {
      const Result typo = place.sweep(line);
      CHECK(typo.code == 1);
      CHECK_MESSAGE(contains(typo.err, fmt::format("--metric {}: no run of {} has it. Hint: {}.\n", metric, out, near)),
                    typo.err);
      CHECK(files() == before);
    }
}

TEST_CASE("sweep: a metric whose name has commas and quotes, as a target may, is one column of results.csv") {
  const SweepFolder place;
  const std::string out = place.dir / "s", metric = "rmse of \"a\", b; c";
  REQUIRE(place.sweep(small_sweep("lr=1e-2,1e-3", out, "")).code == 0);
  for (const char* rate : {"1e-2", "1e-3"}) {
    const std::string file = fmt::format("{}/runs/lr={},s1/run.json", out, rate);
    auto record = nlohmann::ordered_json::parse(read_file(file));
    record[metric] = 0.5;
    write_atomically(file, record.dump());
  }
  REQUIRE(place.sweep({out, "--gather", "--metric", metric}).code == 0);
  const std::string quoted = "\"rmse of \"\"a\"\", b; c", csv = read_file(out + "/results.csv");
  CHECK_MESSAGE(csv.starts_with(fmt::format("lr,{0}_mean\",{0}_deviation\",{0}_best\",seeds,failed,", quoted)), csv);
  CHECK(contains(csv, "\n1e-2,0.5,,0.5,1,0,0,60,"));
}

TEST_CASE("sweep: a run without a number is not in the mean of the figure, as in that of the table") {
  if (!has_gnuplot()) return;
  const SweepFolder place;
  const std::string out = place.dir / "s";
  REQUIRE(place.sweep(small_sweep("cell=gru", out, "--seeds 3")).code == 0);
  CHECK(contains(read_file(out + "/results.svg"), "(3 runs)<"));
  for (const char* seed : {"s1", "s3"}) {
    const std::string file = fmt::format("{}/runs/cell=gru,{}/run.json", out, seed);
    auto record = nlohmann::ordered_json::parse(read_file(file));
    record["own"] = 0.5;
    write_atomically(file, record.dump());
  }
  CHECK(place.sweep({out, "--gather", "--metric", "own"}).code == 1);
  CHECK(contains(read_file(out + "/results.svg"), "(2 runs)<"));
}

TEST_CASE("sweep: a metric that the first run lacks is told while the others run") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const Result r = place.sweep(small_sweep("lr=1e-2,3e-3,1e-3,3e-4", out, "--jobs 1 --metric vaild_loss", "2000"));
  CHECK(r.code == 1);
  const std::size_t told = r.err.find("--metric vaild_loss: no run of " + out + " has it. Hint: valid_loss.");
  REQUIRE_MESSAGE(told != std::string::npos, r.err);
  CHECK(r.err.find("no run of", told + 60) == std::string::npos);
}

TEST_CASE("sweep: a run that diverges is told with its reason and not tried again; one that failed otherwise is") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const Words line = small_sweep("cell=lstm,gru lr=1e-2,1e38", out, "");
  const Result r = place.sweep(line);
  CAPTURE(r.out);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "failed: cell=lstm,lr=1e38,s1: copying: [train] "));
  CHECK(contains(r.out, "2 of 4 runs done, 2 failed\n"));
  CHECK(contains(read_file(out + "/results.md"), "- cell=gru,lr=1e38,s1: copying: [train]"));
  const std::string bad = out + "/runs/cell=lstm,lr=1e38,s1/stderr.txt";
  const auto before = fs::last_write_time(bad);
  CHECK(place.sweep({out}).code == 1);
  CHECK(fs::last_write_time(bad) == before);

  const std::string folder = place.dir / "t/runs/cell=lstm,s1";
  fs::create_directories(folder);
  fs::create_directory(folder + "/metrics.csv");  // where no run can write
  const Result failed = place.sweep(small_sweep("cell=lstm,gru", place.dir / "t", ""));
  CHECK(failed.code == 1);
  CHECK(contains(failed.out, "1 of 2 runs done, 1 failed\n"));
  fs::remove(folder + "/metrics.csv");
  CHECK(place.sweep({place.dir / "t"}).code == 0);
}

TEST_CASE("sweep: why a run's folder cannot be made is told, although the folder cannot take it") {
  const SweepFolder place;
  const std::string out = place.dir / "s", said = "/runs/lr=1e-2,s1] cannot be made: Not a directory\n";
  fs::create_directories(out);
  write_atomically(out + "/runs", "a file");
  const Result r = place.sweep(small_sweep("lr=1e-2,1e-3", out, ""));
  CAPTURE(r.out);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "failed: lr=1e-2,s1: [" + out + said));
  CHECK(contains(r.out, "0 of 2 runs done, 2 failed\n"));
  CHECK_FALSE(contains(r.err, "left over"));
  CHECK(contains(read_file(out + "/results.md"), "- lr=1e-2,s1: [" + out + said));
  const Result one = place.sweep({out, "--worker", "1"});
  CHECK(one.code == 1);
  CHECK_MESSAGE(contains(one.err, out + said), one.err);
}

TEST_CASE("sweep --hours: a combination that diverges while it is timed fails alone; what has ended is not timed") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const Result r = place.sweep(small_sweep("lr=1e-2,1e38", out, "--hours 1"));
  CAPTURE(r.out);
  CAPTURE(r.err);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "failed: lr=1e38,s1: copying: [train] "));
  CHECK(contains(r.out, "1 of 2 runs done, 1 failed\n"));
  CHECK_FALSE(fs::exists(out + "/cost"));
  const auto costs = nlohmann::json::parse(read_file(out + "/costs.json"));
  CHECK(costs.contains("lr=1e-2"));
  CHECK_FALSE(costs.contains("lr=1e38"));
  fs::remove(out + "/costs.json");
  CHECK(place.sweep({out, "--hours", "1"}).code == 1);
  CHECK_FALSE(fs::exists(out + "/costs.json"));
}

TEST_CASE("sweep --hours: the time that measuring takes counts") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  fs::create_directories(out);
  write_atomically(out + "/costs.json", R"({"lr=1e-2": {"update": 0.6, "validation": 0}})");  // 36 s in 36.0036 s
  const Result r = place.sweep(small_sweep("lr=1e-2,1e-3", out, "--hours 0.010001 --jobs 2"));
  CHECK(r.code == 0);
  CHECK_MESSAGE(contains(r.err, "; 1 fit into 0.010001\n"), r.err);
  CHECK(fs::exists(out + "/runs/lr=1e-3,s1/run.json"));
  CHECK_FALSE(fs::exists(out + "/runs/lr=1e-2,s1"));
}
