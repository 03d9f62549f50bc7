// sweep: what later calls change, and what several calls at a time leave each other.
#include <chrono>
#include <regex>
#include <set>
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
  CHECK(r.code == 0);                                        // what the other call has added is not left over
  CHECK_MESSAGE(contains(r.out, " of 2 runs done"), r.out);  // a run that had just begun may go on without its call
  CHECK(contains(read_file(out + "/results.csv"), "\ngru,"));
  CHECK(contains(read_file(out + "/results.csv"), "\nlstm,"));
}

TEST_CASE("sweep: what has no effect is refused in a file, too") {
  const TempDir dir;
  const std::string file = dir / "sweep.toml";
  for (const auto& [line, said] : std::vector<std::pair<std::string, std::string>>{
           {"rungs = 4", "--rungs: is one of --halving"},
           {"sample-seed = 4", "--sample-seed: is one of --sample"},
           {"partition = \"main\"", "--partition: is one of --engine slurm"},
           {"sshlogin = \"a\"", "--sshlogin: is one of --engine parallel"}}) {
    write_atomically(file, line + "\n");
    const Result r = run("sweep", {"copying", "--config", file, "--out", dir / "s"}, dir.path);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, said), r.err);
  }
}

namespace {

/// The means of results.csv in their order.
std::vector<double> means(const std::string& folder) {
  std::istringstream lines(read_file(folder + "/results.csv"));
  std::string line;
  std::getline(lines, line);
  std::vector<double> out;
  while (std::getline(lines, line)) out.push_back(std::stod(fields(line).at(1)));
  return out;
}

}  // namespace

TEST_CASE("sweep: --best is of the metric that it was given for") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  REQUIRE(place.sweep(small_sweep("lr=1e-2,1e-6", out, "")).code == 0);
  const auto best = [&] { return nlohmann::json::parse(read_file(out + "/sweep.json"))["best"]; };
  const auto lowest_first = [&](const std::string& more) {
    Words line{out};
    for (const std::string& word : words(more)) line.push_back(word);
    REQUIRE(place.sweep(line).code == 0);
    const std::vector<double> all = means(out);
    REQUIRE(all.size() == 2);
    return all[0] < all[1];
  };
  CHECK_FALSE(lowest_first("--metric grad_norm --best highest"));
  CHECK_FALSE(lowest_first("--metric grad_norm"));
  CHECK(best() == "highest");
  CHECK(lowest_first("--gather --metric valid_loss"));
  CHECK(lowest_first("--metric valid_loss"));
  CHECK(best() == "auto");
  CHECK_FALSE(lowest_first("--best highest"));
}

TEST_CASE("sweep DIR --config: what the file says counts as on the command line") {
  const SweepFolder place;
  const std::string out = place.dir / "s", file = place.dir / "c.toml";
  REQUIRE(place.sweep(small_sweep("lr=1e-2,1e-6", out, "")).code == 0);
  write_atomically(file, "metric = \"grad_norm\"\nbest = \"highest\"\nthreads = 2\njobs = 1\n");
  REQUIRE(place.sweep({out, "--config", file}).code == 0);
  const auto json = nlohmann::json::parse(read_file(out + "/sweep.json"));
  CHECK(json["metric"] == "grad_norm");
  CHECK(json["best"] == "highest");
  CHECK(json["threads"] == 2);
  CHECK(json["engine"]["jobs"] == 1);
  for (const char* line : {"grid = \"lr=1e-2\"\n", "seeds = 3\n", "halving = 3\n", "stop-below = 0.1\n"}) {
    write_atomically(file, line);
    const Result r = place.sweep({out, "--config", file});
    CHECK_MESSAGE(r.code == 2, line);
    CHECK_MESSAGE(contains(r.err, ": " + out + " has what it was defined with. Hint: "), r.err);
  }
}

TEST_CASE("sweep --halving: another metric, which chooses other runs to go on, is told") {
  const SweepFolder place;
  const std::string out = place.dir / "s", note = "sweep: --metric accuracy now chooses the runs that go on";
  REQUIRE(place.sweep(small_sweep("lr=1e-2,1e-6", out, "--halving 2", "80")).code == 0);
  CHECK_FALSE(contains(place.sweep({out, "--gather", "--metric", "accuracy"}).err, note));
  CHECK_FALSE(contains(place.sweep({out, "--metric", "valid_loss"}).err, note));
  const Result r = place.sweep({out, "--metric", "accuracy", "--dry-run"});
  CHECK_MESSAGE(contains(r.err, note + ", instead of valid_loss. Hint: --gather for a table alone\n"), r.err);
  CHECK_FALSE(contains(place.sweep({out}).err, note));
}

TEST_CASE("sweep --worker 0: what failed in an earlier call is tried again, and failures are told") {
  const SweepFolder place;
  const std::string out = place.dir / "s", failing = out + "/runs/lr=1e-3,s1";
  fs::create_directories(failing + "/metrics.csv");  // where no run can write
  REQUIRE(place.sweep(small_sweep("lr=1e-2,1e-3,1e38", out, "")).code == 1);
  const auto told = [](const Result& r, const std::string& lr) {
    return contains(r.err, "sweep: [lr=" + lr + ",s1] ");
  };
  const Result again = place.sweep({out, "--worker", "0"});
  CAPTURE(again.err);
  CHECK(again.code == 1);
  CHECK(told(again, "1e-3"));
  CHECK(told(again, "1e38"));
  CHECK_FALSE(told(again, "1e-2"));
  fs::remove(failing + "/metrics.csv");
  const Result last = place.sweep({out, "--worker", "0"});
  CHECK(last.code == 1);
  CHECK_FALSE(told(last, "1e-3"));
  CHECK(told(last, "1e38"));
  CHECK(nlohmann::json::parse(read_file(failing + "/run.json"))["finished"] == true);
}

TEST_CASE("sweep: the options above a table can be pasted, also where a shell would split or change them") {
  const SweepFolder place;
  const std::string out = place.dir / "s", file = place.dir / "it's new.toml";
  write_atomically(file, "clip-norm = 1.0\n");
  Words line = small_sweep("lr=1e-2", out, "", "20");
  line.insert(line.end(), {"--config", file});
  const Result r = place.sweep(line);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const std::string pasted = "--steps 20 --config '" + place.dir / "it'\\''s new.toml'";
  CHECK_MESSAGE(contains(r.out, "copying --delay 5 "), r.out);
  CHECK_MESSAGE(contains(r.out, pasted + "\n"), r.out);
  CHECK(contains(read_file(out + "/results.md"), pasted + "`\n"));
  CHECK(contains(read_file(out + "/report.html"), "--config '" + place.dir / "it'"));
}

TEST_CASE("sweep: one run is one run") {
  const SweepFolder place;
  const std::string out = place.dir / "s";
  CHECK(contains(place.sweep(small_sweep("lr=1e-2", out, "--dry-run")).out, "\n1 run of 1 combination\n"));
  CHECK(contains(place.sweep(small_sweep("lr=1e-2", out, "--dry-run --seeds 2")).out, "\n2 runs of 1 combination\n"));
  const Result r = place.sweep(small_sweep("lr=1e-2", out, "--hours 1 --jobs 1"));
  CHECK_MESSAGE(contains(r.err, "1 run would take "), r.err);
  CHECK_MESSAGE(contains(r.err, " hours, 1 at a time; 1 fit into 1\n"), r.err);
  CHECK(contains(place.sweep({out, "--worker", "2"}).err, out + " has 1 run\n"));
}

TEST_CASE("sweep: combinations of one folder name have folders of their own, and keep them in later calls") {
  const SweepFolder place;
  const std::string out = place.dir / "s", many(130, 'a');  // of the four, two have the same mark behind this
  const auto told = [&](const std::string& values, const std::string& seeds) {
    const Result r = place.sweep(small_sweep("tensorboard=" + many + values, out, "--jobs 1 --seeds " + seeds, "1"));
    CHECK_MESSAGE(r.code == 0, r.err);
    std::set<std::string> runs;
    for (const auto& entry : fs::directory_iterator(out + "/runs")) {
      std::istringstream config(read_file(entry.path() / "config.toml"));
      std::string run;
      for (std::string line; std::getline(config, line);)
        if (line.starts_with("hidden = ") || line.starts_with("lr = ") || line.starts_with("seed = "))
          run += line + "; ";
      runs.insert(run);
    }
    return runs;
  };
  CHECK(told(" hidden=66,52 lr=0.0253,0.011", "1").size() == 4);
  CHECK(told(" hidden=52,66 lr=0.011,0.0253", "2").size() == 8);
  CHECK(told(" hidden=52,66 lr=0.011,0.0253", "2").size() == 8);

  const std::string file = out + "/sweep.json";  // as an older Reel wrote it
  write_atomically(file, std::regex_replace(read_file(file), std::regex("-2,s"), ",s"));
  const Result shared = place.sweep({out});
  CHECK(shared.code == 1);
  CHECK_MESSAGE(contains(shared.err, "two of its runs share the folder tensorboard="), shared.err);
}
