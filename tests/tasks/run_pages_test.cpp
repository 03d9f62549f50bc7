// The pages of a folder of results: which files they may replace, and what they keep of papers without presets here.
#include <algorithm>
#include <filesystem>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

struct Place {
  Place() {
    for (const char* paper : {"mine", "yours"}) {
      fs::create_directories(dir / paper);
      write_atomically(
          dir / (std::string(paper) + "/" + paper + ".toml"),
          fmt::format("paper = \"{} (2000)\"\n[t]\ntitle = \"T\"\ntask = \"copying\"\noptions = \"--delay 3 "
                      "--hidden 8 --batch 2 --valid-size 2 --steps 20\"\nmetric = \"valid_loss\"\n"
                      "models.gru = \"--cell gru\"\nmodels.lstm = \"--cell lstm\"\n"
                      "expect.below = {{ all = 100 }}\n",
                      paper));
    }
  }
  Result reproduce(const std::vector<std::string>& words, const std::string& presets = "mine") const {
    return run("reproduce", words, dir.path, {"REEL_PRESETS=" + (dir / presets)});
  }
  Result into(const std::string& results, const std::string& presets = "mine",
              const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{presets + "/t", "--results", dir / results, "--runs", dir / "runs",
                                   "--threads",    "1"};
    words.insert(words.end(), more.begin(), more.end());
    return reproduce(words, presets);
  }
  TempDir dir;
};

}  // namespace

TEST_CASE("files that are no pages of results are not replaced, and no run is begun") {
  const Place place;
  for (const char* name : {"README.md", "mine.md"}) {
    const std::string folder = place.dir / ("at-" + std::string(name)), file = folder + "/" + name;
    fs::create_directories(folder);
    write_atomically(file, "my precious project");
    const Result r = place.into("at-" + std::string(name));
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, file + ": a page of results would replace this file"), r.err);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(place.dir / "runs"));
    const Result pages = place.reproduce({"--pages", folder});
    CHECK(pages.code == 2);
    CHECK_MESSAGE(contains(pages.err, "--pages: " + folder + " has no stored results"), pages.err);
    CHECK(read_file(file) == "my precious project");
  }
  REQUIRE(place.into("results").code == 0);
  for (const char* name : {"README.md", "mine.md"}) {
    const std::string file = place.dir / "results/" + name, ours = read_file(file);
    write_atomically(file, "my precious project");
    CHECK(place.reproduce({"--pages", place.dir / "results"}).code == 2);
    CHECK(read_file(file) == "my precious project");
    fs::remove(file);
    CHECK(place.reproduce({"--pages", place.dir / "results"}).code == 0);
    CHECK(read_file(file) == ours);
  }
}

TEST_CASE("a paper whose presets are not here keeps its line, and is told of") {
  const Place place;
  REQUIRE(place.into("results").code == 0);
  const Result r = place.into("results", "yours");
  CHECK(r.code == 0);
  CHECK(contains(r.err, "results/mine/t.csv: there is no preset of this table\n"));
  const std::string index = read_file(place.dir / "results/README.md");
  CHECK_MESSAGE(contains(index, "| [mine (2000)](mine.md) | 2 | 0 | 0 | 0 | 2 | "), index);
  CHECK_MESSAGE(contains(index, "| [yours (2000)](yours.md) | 2 | 0 | 0 | 0 | 2 | "), index);
  CHECK_MESSAGE(contains(index, "| all | 4 | 0 | 0 | 0 | 4 | "), index);
  CHECK(place.reproduce({"--pages", place.dir / "results"}, "yours").code == 0);
  CHECK(read_file(place.dir / "results/README.md") == index);
  const Result checked = place.reproduce({"--check", place.dir / "results"}, "yours");
  CHECK_FALSE(contains(checked.err, "is not what the data say"));
  fs::remove_all(place.dir / "results/mine");
  CHECK(place.reproduce({"--pages", place.dir / "results"}, "yours").code == 0);
  CHECK_FALSE(contains(read_file(place.dir / "results/README.md"), "mine"));
}

TEST_CASE("numbers that are there twice, and curves that are gone, are found") {
  const Place place;
  REQUIRE(place.into("results", "mine", {"--seeds", "2"}).code == 0);
  const std::string csv = place.dir / "results/mine/t.csv", text = read_file(csv);
  const auto line = [&](std::size_t at) {
    std::size_t begin = 0;
    while (--at > 0) begin = text.find('\n', begin) + 1;
    return text.substr(begin, text.find('\n', begin) + 1 - begin);
  };
  const auto check = [&] { return place.reproduce({"--check", place.dir / "results"}); };
  write_atomically(csv, text + line(2));
  CHECK_MESSAGE(contains(check().err, "t.csv:6] mine/t/gru, seed 1, is there already"), check().err);
  CHECK(check().code == 1);
  write_atomically(csv, text + line(5));
  CHECK_MESSAGE(contains(check().err, "t.csv:6] mine/t/lstm, seed 2: valid_loss is there already"), check().err);
  write_atomically(csv, text);
  CHECK(check().code == 0);
  fs::remove(place.dir / "results/mine/t-curves.csv");
  CHECK(check().code == 1);
  CHECK_MESSAGE(contains(check().err, "results/mine/t-curves.csv: is missing"), check().err);
}

TEST_CASE("--ranks of some cells only, and of no results; runs of another length are neither judged nor stored") {
  const Place place;
  const Result twice = place.into("other", "mine", {"--budget", "2"});
  CHECK(twice.code == 0);
  CHECK_FALSE(contains(twice.out, "pass"));
  const Result nothing = place.reproduce({"--check", place.dir / "other"});
  CHECK(nothing.code == 2);
  CHECK_MESSAGE(contains(nothing.err, "--check: " + (place.dir / "other") + " has no stored results"), nothing.err);
  CHECK(place.reproduce({"--ranks", "mine", "--results", place.dir / "nowhere"}).code == 2);
  REQUIRE(place.into("results").code == 0);
  const auto ranks = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--ranks", "mine", "--results", place.dir / "results"});
    return place.reproduce(more).out;
  };
  CHECK(contains(ranks({}), "(2 of 2 models)"));
  CHECK(contains(ranks({"--cells", "gru"}), "mine/t: gru (1 of 1 models, not counted)\n"));
}

TEST_CASE("runs of another length leave the figures of the stored ones, and have others") {
  if (!has_gnuplot()) return;
  const Place place;
  REQUIRE(place.into("results").code == 0);
  const std::string svg = place.dir / "results/mine/t.svg", drawn = read_file(svg);
  REQUIRE(place.into("results", "mine", {"--budget", "2"}).code == 0);
  CHECK(read_file(svg) == drawn);
  CHECK(fs::exists(place.dir / "results/mine/t-budget-2.svg"));
  CHECK_FALSE(contains(read_file(place.dir / "results/mine.md"), "budget-2"));
  CHECK(place.reproduce({"--check", place.dir / "results"}).code == 0);
}

TEST_CASE("--check, --pages and --ranks refuse options that have no effect on them") {
  const Place place;
  REQUIRE(place.into("results").code == 0);
  const std::string page = place.dir / "results/mine.md", text = read_file(page);
  write_atomically(page, text + "more");
  const std::string folder = place.dir / "results";
  for (const auto& [words, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--pages", "--results", folder}, "--results: has no effect on --pages, which takes a folder as NAME"},
           {{"--check", folder, "--results", folder}, "--results: has no effect on --check"},
           {{"--check", "--pages", folder}, "--pages: has no effect on --check"},
           {{"--check", folder, "--cells", "gru"}, "--cells: has no effect on --check"},
           {{"--check", folder, "--seeds=2"}, "--seeds: has no effect on --check"},
           {{"--ranks", "--check", folder}, "--ranks: has no effect on --check"},
           {{"--ranks", "mine", "--threads", "1"},
            "--threads: has no effect on --ranks, which takes NAMES or --all"}}) {
    const Result r = place.reproduce(words);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, says), r.err);
  }
  CHECK(read_file(page) == text + "more");
}

TEST_CASE("--check: updates and solved_at.step that the curve contradicts, and curves that are cut") {
  const Place place;
  const std::string stored = REEL_SOURCE_DIR "/docs/results/nru/fig1", copy = place.dir / "results/nru/fig1";
  const std::string numbers = read_file(stored + ".csv"), curves = read_file(stored + "-curves.csv");
  const std::string of_run = "nru/fig1/T100-nru,1,", solved = of_run + "solved_at.step,updates,15000,";
  REQUIRE(contains(numbers, solved));
  fs::create_directories(place.dir / "results/nru");
  const auto err = [&](const std::string& with, const std::string& and_curves, const char* what = "--check") {
    write_atomically(copy + ".csv", with);
    write_atomically(copy + "-curves.csv", and_curves);
    return run("reproduce", {what, place.dir / "results"}, place.dir.path, {"REEL_PRESETS=" REEL_SOURCE_DIR "/presets"})
        .err;
  };
  const auto solved_at = [&](const std::string& step) {
    std::string with = numbers;
    with.replace(with.find(solved), solved.size(), of_run + "solved_at.step,updates," + step + ",");
    return err(with, curves);
  };
  err(numbers, curves, "--pages");
  CHECK(err(numbers, curves).empty());
  const std::string begin = "reproduce: nru/fig1/T100-nru, seed 1: ";
  CHECK(contains(solved_at("500"), begin + "solved_at.step is 500, but its curve has 0.193"));
  CHECK(contains(solved_at("inf"), begin + "solved_at.step is inf, but its curve has "));
  CHECK(contains(solved_at("15500"), begin + "solved_at.step is 15500, but its curve has "));
  CHECK(contains(solved_at("999999"), begin + "solved_at.step is 999999, but its curve has "));
  CHECK(contains(solved_at("250"), begin + "solved_at.step is 250, where its curve has no validation"));
  CHECK(contains(err(numbers, curves.substr(0, curves.find('\n') + 1)), begin + "it has no curve"));
  const std::size_t last = curves.find(of_run + "32500,");
  REQUIRE(last != curves.npos);
  CHECK(contains(err(numbers, curves.substr(0, last)), begin + "it did 32500 updates, but its curve ends at 32000"));
}
