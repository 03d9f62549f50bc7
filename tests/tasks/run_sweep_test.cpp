// sweep through the real programs: grids, samples, halving, results, errors.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/installed.h"
#include "tests/support/sweeps.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

TEST_CASE(
    "sweep: mean, deviation and best of what the runs say; what is done is kept; more seeds and values are added") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const Result r = place.sweep(small_sweep("cell=lstm,srnn lr=1e-2", out, "--seeds 3 --jobs 2"));
  CAPTURE(r.out);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "6 of 6 runs done\n"));
  std::vector<double> losses;
  for (const char* seed : {"1", "2", "3"})
    losses.push_back(place.record(fmt::format("s/runs/cell=lstm,lr=1e-2,s{}", seed))["valid_loss"]);
  const double mean = (losses[0] + losses[1] + losses[2]) / 3;
  double squares = 0;
  for (const double loss : losses) squares += (loss - mean) * (loss - mean);
  std::istringstream csv(read_file(out + "/results.csv"));
  std::string line;
  std::getline(csv, line);
  CHECK(line ==
        "cell,valid_loss_mean,valid_loss_deviation,valid_loss_best,seeds,failed,missing,updates,best_run,seconds");
  int found = 0;
  while (std::getline(csv, line)) {
    if (!line.starts_with("lstm,")) continue;
    ++found;
    const Words row = fields(line);
    CHECK(std::stod(row[1]) == doctest::Approx(mean).epsilon(1e-12));
    CHECK(std::stod(row[2]) == doctest::Approx(std::sqrt(squares / 2)).epsilon(1e-9));
    CHECK(std::stod(row[3]) == *std::min_element(losses.begin(), losses.end()));
    CHECK(row[4] == "3");
    CHECK(row[7] == "60");
  }
  CHECK(found == 1);
  CHECK(contains(read_file(out + "/results.md"), "| cell | valid_loss | best | seeds | updates | time |"));
  if (has_gnuplot()) {
    CHECK(contains(read_file(out + "/results.svg"), "lstm"));
    CHECK(fs::exists(out + "/results.png"));
  }

  const auto written = [&] { return fs::last_write_time(out + "/runs/cell=lstm,lr=1e-2,s1/run.json"); };
  const auto before = written();
  const auto whole = outcome(out);
  for (const Words& again : {Words{out}, small_sweep("cell=lstm,srnn lr=1e-2", out, "--seeds 3")}) {
    const Result kept = place.sweep(again);
    CHECK(kept.code == 0);
    CHECK(outcome(out) == whole);
    CHECK(written() == before);
  }
  const Result more = place.sweep(small_sweep("cell=lstm,srnn,gru lr=1e-2", out, "--seeds 4"));
  CHECK(more.code == 0);
  CHECK(contains(more.out, "12 of 12 runs done\n"));
  CHECK(written() == before);

  for (const auto& [other, said] :
       {std::pair{small_sweep("cell=lstm lr=1e-2", out, "--seeds 4"),
                  "holds a sweep with the run cell=srnn,lr=1e-2,s1"},
        {small_sweep("cell=lstm,srnn,gru lr=1e-2", out, "--seeds 4", "80"), "holds a sweep with options --delay 5"},
        {small_sweep("cell=lstm,srnn,gru lr=1e-2", out, "--seeds 4 --halving 3"),
         "--halving, --rungs 0, 2, not 3, 2"}}) {
    const Result refused = place.sweep(other);
    CHECK(refused.code == 2);
    CHECK_MESSAGE(contains(refused.err, said), refused.err);
  }
  CHECK(written() == before);
}

TEST_CASE("sweep: a run whose metrics cannot be read is named, and the figure shows the others") {
  if (!has_gnuplot()) return;
  const SweepFolder place;
  const std::string out = place.dir / "s";
  REQUIRE(place.sweep(small_sweep("cell=lstm,srnn", out, "")).code == 0);
  fs::remove(out + "/results.svg");
  write_atomically(out + "/runs/cell=lstm,s1/metrics.csv", "step,loss\nno numbers\n");
  const Result r = place.sweep({out});
  CHECK(r.code == 1);
  CHECK(contains(r.err, "metrics.csv:"));
  const std::string said = "cell=lstm,s1 is not in the figure: ";
  CHECK_MESSAGE(contains(read_file(out + "/results.md"), said), read_file(out + "/results.md"));
  CHECK(contains(read_file(out + "/results.md"), "![Curves](results.svg)"));
  CHECK(contains(read_file(out + "/results.svg"), "srnn"));
}

TEST_CASE("sweep: a run whose folder has lost its config.toml is named") {
  const SweepFolder place;
  const std::string out = place.dir / "s", said = "cell=lstm,s1] is not the folder of a run: no config.toml";
  REQUIRE(place.sweep(small_sweep("cell=lstm,srnn", out, "")).code == 0);
  fs::remove(out + "/runs/cell=lstm,s1/config.toml");
  const Result r = place.sweep({out, "--gather"});
  CHECK(r.code == 1);
  CHECK_MESSAGE(contains(r.err, said), r.err);
  CHECK(contains(read_file(out + "/results.md"), said));
  CHECK(contains(read_file(out + "/report.html"), said));
}

TEST_CASE("sweep: settings of other cells are left out; values with commas; only options that differ are columns") {
  const SweepFolder place;
  const Result r =
      place.sweep(small_sweep("cell=lstm,srnn srnn.width=2,4 lr=1e-2 hidden=8,(8,4)", place.dir / "s", "--dry-run"));
  CHECK(r.code == 0);
  CHECK(r.out ==
        "cell=lstm,lr=1e-2,hidden=8  60 updates\ncell=lstm,lr=1e-2,hidden=8,4  60 updates\n"
        "cell=srnn,srnn.width=2,lr=1e-2,hidden=8  60 updates\ncell=srnn,srnn.width=2,lr=1e-2,hidden=8,4  60 updates\n"
        "cell=srnn,srnn.width=4,lr=1e-2,hidden=8  60 updates\ncell=srnn,srnn.width=4,lr=1e-2,hidden=8,4  60 updates\n"
        "6 runs of 6 combinations\n");
  for (const char* width : {"60 --srnn.width 4", "60 --srnn.width=4"}) {
    const Result refused = place.sweep(small_sweep("cell=lstm,srnn", place.dir / "s", "--dry-run", width));
    CHECK(refused.code == 2);
    CHECK_MESSAGE(contains(refused.err,
                           "cell=lstm: copying: --srnn.width: is not a setting of --cell lstm. "
                           "Hint: in --grid, srnn.width=4 goes to srnn alone\n"),
                  refused.err);
  }
  CHECK_FALSE(fs::exists(place.dir / "s"));
}

TEST_CASE("sweep: what the task says of options without effect is told once") {
  const SweepFolder place;
  const Result r =
      place.sweep(small_sweep("layers=2,1 dropout=0,0.5,0.1", place.dir / "s", "--dry-run", "60 --momentum 0.9"));
  CHECK(r.code == 0);
  CHECK(r.err ==
        "sweep: layers=2,dropout=0: note: --momentum has no effect: it is for sgd, and --optimizer is rmsprop\n"
        "sweep: layers=1,dropout=0.5: note: --dropout has no effect: it works between layers, and there is one. "
        "Hint: --layers 2\n");
  const Result both = place.sweep(small_sweep("lr=1,2", place.dir / "s", "--dry-run", "60 --lr=3 --lr 4"));
  CHECK(both.err == "sweep: --lr: --grid has it, too, and its values count\n");
}

TEST_CASE("sweep --sample: values in their ranges; more of them begin with the same") {
  const SweepFolder place;
  const auto drawn = [&](const std::string& n, const std::string& seed) {
    const Result r = place.sweep(
        {"copying", "--grid", "lr=log(1e-4,1e-1) hidden=int(3,5) cell=gru,lstm zoneout=uniform(0.1,0.2)", "--sample", n,
         "--sample-seed", seed, "--out", place.dir / "s", "--dry-run", "--", "--steps", "7"});
    REQUIRE(r.code == 0);
    return r.out.substr(0, r.out.rfind('\n', r.out.size() - 2) + 1);
  };
  const std::string twenty = drawn("20", "1");
  CHECK(drawn("12", "1") == twenty.substr(0, drawn("12", "1").size()));
  CHECK(drawn("12", "2") != drawn("12", "1"));
  std::istringstream lines(twenty);
  std::map<std::string, int> seen;
  int small_rates = 0, n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    double lr = 0, zoneout = 0;
    int hidden = 0;
    char cell[8];
    REQUIRE(std::sscanf(line.c_str(), "lr=%lf,hidden=%d,cell=%7[a-z],zoneout=%lf", &lr, &hidden, cell, &zoneout) == 4);
    CHECK((lr >= 1e-4 && lr <= 1e-1 && hidden >= 3 && hidden <= 5 && zoneout >= 0.1 && zoneout <= 0.2));
    ++seen[cell];
    ++seen[fmt::format("{}", hidden)];
    small_rates += lr < 3.2e-3;  // half of them, on a logarithmic scale
  }
  CHECK(n == 20);
  CHECK(seen.size() == 5);  // both cells, all three sizes
  CHECK((small_rates >= 5 && small_rates <= 15));
}

TEST_CASE("sweep --sample: digits tell values of a narrow range apart, none is outside, equal draws are told") {
  const SweepFolder place;
  const auto drawn = [&](const std::string& grid, const std::string& n) {
    const Result r = place.sweep(
        {"copying", "--grid", grid, "--sample", n, "--out", place.dir / "s", "--dry-run", "--", "--optimizer", "adam"});
    CHECK(r.code == 0);
    return r;
  };
  for (const auto& [option, kind, low, high] : {std::tuple{"beta2", "uniform", 0.999, 0.99999},
                                                {"lr", "uniform", 0.99999, 1.0},
                                                {"lr", "log", 0.1234, 0.12341},
                                                {"lr", "uniform", 0.12344, 0.13}}) {
    const Result r = drawn(fmt::format("{}={}({},{})", option, kind, low, high), "8");
    CAPTURE(r.out);
    CHECK(r.err.empty());
    CHECK(contains(r.out, "8 runs of 8 combinations\n"));
    std::istringstream lines(r.out);
    std::string line;
    for (int i = 0; i < 8; ++i) {
      std::getline(lines, line);
      const double value = std::stod(line.substr(line.find('=') + 1));
      CHECK((value >= low && value <= high));
    }
  }
  std::istringstream lines(drawn("lr=uniform(0.1,0.2)", "8").out);
  for (std::string line; std::getline(lines, line) && line.starts_with("lr=");)
    CHECK(line.find(' ') <= std::string("lr=0.1234").size());  // folders of earlier sweeps keep their names
  CHECK(drawn("batch=int(100000,100009)", "9").err ==
        "sweep: --sample 9: 2 draws are equal to others; there are 7 combinations\n");
  CHECK(drawn("lr=1e-2", "3").err == "sweep: --sample 3: 2 draws are equal to others; there is 1 combination\n");
}

TEST_CASE("sweep --halving: the best third goes on, and is the run that would have gone through") {
  const SweepFolder place;
  const std::string grid = "lr=1e-2,3e-3,1e-3,1e-4,1e-5,1e-6", out = place.dir / "h", whole = place.dir / "w";
  const Result r = place.sweep(small_sweep(grid, out, "--seeds 2 --halving 3", "180"));
  CAPTURE(r.out);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "2 of 12 runs done, 10 dropped\n"));
  REQUIRE(place.sweep(small_sweep(grid, whole, "--seeds 2", "180")).code == 0);
  const auto halved = outcome(out), gone_through = outcome(whole);
  std::map<std::size_t, int> rows;
  for (const auto& [name, metrics] : gone_through) {
    if (name == "results.csv") continue;
    const std::string part = halved.at(name);
    CHECK_MESSAGE(metrics.starts_with(part), name);  // same validations, as far as it went
    ++rows[static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n')) - 1];
  }
  CHECK(rows == std::map<std::size_t, int>{{1, 8}, {3, 2}, {9, 2}});  // 20, 60 and 180 updates, 20 a validation
  // the best after 20 updates is among those that went on, the best after 60 went to the end
  const auto valid = [&](const std::string& name, std::size_t row) {
    std::istringstream lines(gone_through.at(name));
    std::string line;
    for (std::size_t i = 0; i <= row; ++i) std::getline(lines, line);
    return std::stod(fields(line)[3]);
  };
  std::map<double, std::string> at_first;
  for (const char* lr : {"1e-2", "3e-3", "1e-3", "1e-4", "1e-5", "1e-6"})
    at_first[valid(fmt::format("lr={},s1", lr), 1) + valid(fmt::format("lr={},s2", lr), 1)] = lr;
  int position = 0;
  for (const auto& [loss, lr] : at_first)
    CHECK_MESSAGE((std::count(halved.at(fmt::format("lr={},s1", lr)).begin(),
                              halved.at(fmt::format("lr={},s1", lr)).end(), '\n') > 2) == (position++ < 2),
                  lr);
}

TEST_CASE("sweep --stop-below: a run stops when its validation is low enough") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  REQUIRE(place.sweep(small_sweep("lr=1e-2,1e-6", out, "--stop-below 1.9", "400")).code == 0);
  const auto fast = place.record("s/runs/lr=1e-2,s1"), slow = place.record("s/runs/lr=1e-6,s1");
  CHECK(fast["steps"] < 400);
  CHECK(fast["valid_loss"] < 1.9);
  CHECK(slow["steps"] == 400);
  std::istringstream rows(read_file(out + "/runs/lr=1e-2,s1/metrics.csv"));
  int below = 0;
  for (std::string line; std::getline(rows, line);)
    if (!line.starts_with("step")) below += std::stod(fields(line)[4]) < 1.9;
  CHECK(below == 1);  // the last one
  const std::string did = fmt::format("{}", fast["steps"].get<int>());
  std::istringstream table(read_file(out + "/results.csv"));
  std::map<std::string, std::string> updates;  // by learning rate
  for (std::string line; std::getline(table, line);) updates[fields(line)[0]] = fields(line)[7];
  CHECK(updates == std::map<std::string, std::string>{{"lr", "updates"}, {"1e-2", did}, {"1e-6", "400"}});
  CHECK(contains(read_file(out + "/results.md"), "| 1 | " + did + " of 400 |"));
  CHECK(contains(place.sweep({out}).out, "2 of 2 runs done\n"));
}

TEST_CASE("sweep --hours: the cheapest runs first, as many as fit") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  Words line = small_sweep("hidden=256,8", out, "--hours 0.002 --jobs 1", "60");
  line.insert(line.end(), {"--delay", "400", "--steps", "100000"});
  line[2] = "steps=100000000,60 hidden=8";
  const Result r = place.sweep(line);
  CAPTURE(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.err, "; 1 fit into 0.002\n"));
  CHECK(contains(r.out, "1 of 2 runs done\n"));
  CHECK(fs::exists(out + "/runs/steps=60,hidden=8,s1/run.json"));
  CHECK_FALSE(fs::exists(out + "/runs/steps=100000000,hidden=8,s1"));
  CHECK(nlohmann::json::parse(read_file(out + "/costs.json")).size() == 2);
}

TEST_CASE("sweep: presets and tables of presets; a grid over them") {
  const SweepFolder place;
  fs::create_directories(place.dir / "presets");
  write_atomically(place.dir / "presets/tiny.toml", R"toml(
[t]
title = "Tiny"
task = "copying"
options = "--delay 5 --hidden 8 --batch 2 --valid-size 4 --steps 20"
metric = "valid_loss"
models.srnn = "--cell srnn"
models.gru = "--cell gru"
[mixed]
title = "Mixed"
options = "--hidden 8"
metric = "valid_loss"
cases.a = ""
cases.b = ""
tasks.a = "copying"
tasks.b = "adding"
models.srnn = "--cell srnn"
)toml");
  const auto sweep = [&](const Words& line) {
    return run("sweep", line, place.dir.path, {"REEL_PRESETS=" + (place.dir / "presets")});
  };
  const Result table = sweep({"tiny/t", "--grid", "lr=1e-2,1e-3", "--out", place.dir / "s"});
  CAPTURE(table.err);
  CHECK(table.code == 0);
  CHECK(contains(table.out, "4 of 4 runs done\n"));
  CHECK(contains(read_file(place.dir / "s/results.csv"), "\ntiny/t/gru,1e-2,"));
  const Result one = sweep({"tiny/t/gru", "--seeds", "2", "--out", place.dir / "o"});
  CHECK(one.code == 0);
  CHECK(fs::exists(place.dir / "o/runs/s2/run.json"));
  const Result mixed = sweep({"tiny/mixed", "--out", place.dir / "m"});
  CHECK(mixed.code == 2);
  CHECK(contains(mixed.err,
                 "tiny/mixed: has presets of copying and adding. Hint: a preset of it, or reproduce tiny/mixed"));
}

TEST_CASE("sweep: errors are one line with the rule, the value and a hint, before anything is written") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  const std::pair<Words, std::string> wrong[] = {
      {{"copyng", "--out", out}, "copyng: is no task, preset or folder of a sweep. Hint: copying."},
      {{"srnn/tabel2", "--out", out},
       "srnn/tabel2: is no task, preset or folder of a sweep, near ones are srnn/table2"},
      {{"srnn/fig2/T200-snn", "--out", out},
       "srnn/fig2/T200-snn: is no task, preset or folder of a sweep, near ones are srnn/fig2/T200-srnn"},
      {{"mechanism", "--out", out}, "mechanism: trains nothing"},
      {{"copying"}, "--out DIR expected"},
      {{"--out", out}, "one NAME of a task, a preset or a sweep's folder expected, got 0"},
      {{"copying", "--grid", "cell", "--out", out}, "--grid: \"cell\" is not of the form OPTION=VALUE,VALUE"},
      {{"copying", "--grid", "=3", "--out", out}, "--grid: \"=3\" is not of the form"},
      {{"copying", "--grid", "cell=gru,", "--out", out}, "--grid: cell=gru,: has an empty value"},
      {{"copying", "--grid", "cell=gru,gru", "--out", out}, "--grid: cell=gru,gru: has gru twice"},
      {{"copying", "--grid", "lr=1e-2,0.01", "--out", out}, "--grid: lr=1e-2,0.01: has 1e-2 twice, also as 0.01"},
      {{"copying", "--grid", "lr=1 lr=2", "--out", out}, "--grid: has lr twice"},
      {{"copying", "--grid", "cell=srnn srrn.width=2,4", "--out", out},
       "--grid: srrn.width=2,4: srrn is not among cell=srnn. Hint: srnn."},
      {{"copying", "--grid", "srnn.width=log(2,4) cell=gru,(lstm,gru)", "--sample", "2", "--out", out},
       "--grid: srnn.width=log(2,4): srnn is not among cell=gru,(lstm,gru)"},
      {{"copying", "--grid", "hidden=(8,4", "--out", out}, "--grid: \"hidden=(8,4\" has parentheses that do not match"},
      {{"copying", "--grid", "lr=log(1e-4,1e-1)", "--out", out}, "is a range to draw from. Hint: --sample N"},
      {{"copying", "--grid", "lr=log(0,1)", "--sample", "3", "--out", out},
       "--grid: lr=log(0,1): log(LOW,HIGH) expected, with 0 < LOW < HIGH"},
      {{"copying", "--grid", "hidden=int(1.5,3)", "--sample", "3", "--out", out},
       "int(LOW,HIGH) expected, with integers LOW < HIGH"},
      {{"copying", "--sample", "3", "--out", out}, "--sample: --grid with ranges expected"},
      {{"copying", "--grid", "lr=1e-2,abc", "--out", out},
       "lr=abc: copying: --lr: a number of 0 or more expected, got \"abc\""},
      {{"copying", "--grid", "lrr=1", "--out", out}, "lrr=1: copying: --lrr: there is no such option. Hint: --lr"},
      {{"copying", "--out", out, "--", "--hiden", "3"}, "copying: --hiden: there is no such option. Hint: --hidden."},
      {{"paths", "--grid", "steps=5,10", "--out", out, "--", "--epochs", "1"}, ": paths: --epochs 1: --steps "},
      {{"copying", "--out", out, "--", "--seed", "3"}, "--seed: is set by the sweep itself. Hint: sweep's --seeds N"},
      {{"copying", "--grid", "out=a,b", "--out", out}, "--out: is set by the sweep itself"},
      {{"copying", "--grid", "explain=text", "--out", out}, "--explain: is for the task alone, as it trains nothing"},
      {{"copying", "--lr", "3", "--out", out},
       "--lr: there is no such option. Hint: options of the task stand behind --"},
      {{"copying", "--rungs", "4", "--out", out}, "--rungs: is one of --halving"},
      {{"copying", "--sample-seed", "4", "--out", out}, "--sample-seed: is one of --sample"},
      {{"copying", "--halving", "1", "--out", out}, "--halving: 2 or more expected, got 1"},
      {{"copying", "--halving", "3", "--metric", "test.loss", "--out", out},
       "--metric test.loss: --halving ranks runs by what is in metrics.csv"},
      {{"copying", "--metric", "", "--out", out}, "--metric: a name expected. Hint: --metric valid_loss"},
      {{"copying", "--halving", "3", "--hours", "1", "--out", out}, "--hours: does not go with --halving"},
      {{"copying", "--grid", "lr=1", "--halving", "3", "--out", out, "--dry-run", "--", "--steps", "90", "--warmup",
        "50"},
       "lr=1: --warmup: the first rung of --halving has 12 updates, got 50. Hint: --warmup 12, or fewer --rungs"},
      {{"copying", "--grid", "schedule=step,cosine", "--halving", "3", "--out", out},
       "schedule=cosine: --schedule cosine: falls to the end of the run, and each rung of --halving has another end"},
      {{"copying", "--partition", "main", "--out", out}, "--partition: is one of --engine slurm"},
      {{"copying", "--sshlogin", "a", "--out", out}, "--sshlogin: is one of --engine parallel"},
      {{"copying", "--gather"}, "copying: the folder of a sweep expected. Hint: sweep DIR --gather"},
      {{place.dir.path}, "holds no sweep.json"}};
  for (const auto& [line, said] : wrong) {
    const Result r = place.sweep(line);
    CAPTURE(r.err);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, "sweep: "), said);
    CHECK_MESSAGE(contains(r.err, said), said);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(out));
  }
  fs::create_directory(out);
  for (const std::string damaged : {"", "{", "[1]", "{\"task\": 3}"}) {
    write_atomically(out + "/sweep.json", damaged);
    const Result r = place.sweep({out});
    CHECK(r.code == 1);
    CHECK(contains(r.err, "sweep.json] is damaged: "));
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  }
}
