// compare: what title and legend say of runs of one task, and of several; what it tells of runs that diverged or ended
// early, and of values that a logarithmic axis cannot show.
#include <filesystem>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("compare: the task is the title if all runs have the same, and in the legend if they do not") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  for (const std::string task : {"adding", "copying"})
    for (const std::string cell : {"gru", "lstm"})
      REQUIRE(run(task,
                  {"--cell", cell, "--hidden", "4", "--batch", "2", "--valid-size", "2", "--steps", "4",
                   "--valid-every", "2", "--threads", "1", "--quiet", "--out", dir / (task + cell)},
                  dir.path)
                  .code == 0);
  const auto svg = [&](const std::string& second, std::vector<std::string> more = {}) {
    const std::string out = dir / "figure.svg";
    more.insert(more.begin(), {dir / "addinggru", dir / second, "--out", out});
    REQUIRE(run("compare", more, dir.path).code == 0);
    return read_file(out);
  };
  const std::string same = svg("addinglstm"), different = svg("copyinggru");
  CHECK(contains(same, ">adding<"));
  CHECK_FALSE(contains(same, "adding, "));
  CHECK_FALSE(contains(different, ">adding<"));
  CHECK(contains(different, "adding, gru"));
  CHECK(contains(different, "copying, gru"));
  CHECK_FALSE(contains(svg("copyinggru", {"--names", "a,b"}), "adding"));
}

namespace {

/// A run with a validation at each 10 updates, without training one.
std::string put_run(const TempDir& dir, int seed, const std::vector<double>& losses, const std::string& record = "{}") {
  const std::string folder = dir / fmt::format("s{}", seed);
  std::filesystem::create_directories(folder);
  write_atomically(folder + "/config.toml", fmt::format("cell = \"gru\"\nseed = {}\n", seed));
  std::string rows = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n";
  for (std::size_t i = 1; i <= losses.size(); ++i)
    rows += fmt::format("{},{},{},1,{},,1\n", 10 * i, 20 * i, 0.1 * static_cast<double>(i * seed), losses[i - 1]);
  write_atomically(folder + "/metrics.csv", rows);
  write_atomically(folder + "/run.json", record);
  return folder;
}

}  // namespace

TEST_CASE("compare: a run that diverged is not in the mean of its seeds, and a mean that ends early is told") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const std::string a = put_run(dir, 1, {5, 4, 3, 2}), b = put_run(dir, 2, {5, 4, 3, 2}),
                    c = put_run(dir, 3, {9, 9}, R"({"diverged_at_step": 21})"), d = put_run(dir, 4, {5, 4, 3}),
                    out = dir / "figure.svg";
  const auto compared = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--out", out, "--x", "steps"});
    const Result r = run("compare", words, dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  CHECK(compared({a, b}).empty());
  CHECK(compared({a, b, c}) == "compare: left out of gru: " + c + ": it diverged at step 21. Hint: --seeds each\n");
  CHECK(contains(read_file(out), "gru (2 runs)<"));
  CHECK(contains(read_file(out), ">40<"));  // updates
  CHECK(compared({a, b, d}) ==
        "compare: gru: the mean ends at 30 updates, with " + d + "; " + a + " goes on to 40. Hint: --seeds each\n");
  CHECK(contains(read_file(out), "gru (3 runs)<"));
  CHECK(compared({a, b, c, d, "--seeds", "each"}).empty());
  CHECK(contains(read_file(out), "gru, seed 3<"));
  CHECK(compared({c}).empty());  // where it went wrong is seen
  CHECK(compared({a, c, "--names", "x,x"}) == "compare: left out of x: " + c + ": it diverged at step 21\n");
}

TEST_CASE("compare --x seconds: seeds have a mean, of their times, too") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const std::string a = put_run(dir, 1, {5, 4, 3, 2}), b = put_run(dir, 3, {5, 4, 3, 2}), out = dir / "figure.svg";
  const Result r = run("compare", {a, b, "--x", "seconds", "--out", out}, dir.path);
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(contains(read_file(out), "gru (2 runs)<"));
  CHECK(contains(read_file(out), ">0.8<"));
  CHECK_FALSE(contains(read_file(out), ">1.2<"));
}

TEST_CASE("compare: values that a logarithmic axis cannot show are told; --log auto shows them") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const std::string a = put_run(dir, 1, {900, 0.5, 0, -300}), b = put_run(dir, 2, {-1, -2}), out = dir / "figure.svg";
  const Result seen = run("compare", {a, "--out", out}, dir.path);
  CHECK(seen.err.empty());
  CHECK(contains(read_file(out), ">-200<"));
  const Result hidden = run("compare", {a, "--out", out, "--log", "on"}, dir.path);
  CHECK(hidden.code == 0);
  CHECK(hidden.err ==
        "compare: --log on: 2 of 4 values of " + a + " are not above 0, which a logarithmic axis cannot show\n");
  const Result none = run("compare", {b, "--out", out, "--log", "on"}, dir.path);
  CHECK(none.code == 1);
  CHECK_MESSAGE(contains(none.err, "--log on: no value is above 0. Hint: --log off"), none.err);
  // a run that is in no mean is not drawn
  const std::string c = put_run(dir, 3, {9, 0}, R"({"diverged_at_step": 21})");
  const std::string left = "compare: left out of gru: " + c + ": it diverged at step 21. Hint: --seeds each\n";
  CHECK(run("compare", {a, c, "--out", out, "--log", "on"}, dir.path).err == left + hidden.err);
  CHECK(run("compare", {b, c, "--out", out, "--log", "on"}, dir.path).err == left + none.err);
}

TEST_CASE("compare --names: one for each run") {
  const TempDir dir;
  const std::string a = put_run(dir, 1, {2, 1}), b = put_run(dir, 2, {2, 1});
  for (const char* names : {"x,,y", ",x,y", "x,", ","}) {
    const Result r = run("compare", {a, b, "--names", names, "--out", dir / "figure.svg"}, dir.path);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, fmt::format("--names {}: a name for each run expected, got an empty one", names)),
                  r.err);
  }
  CHECK(contains(run("compare", {"--help"}, dir.path).out, "empty: the cell and"));
}
