// Figures of a table: which rows a bar chart shows, which baseline curves have, and what pictures are called.
#include <filesystem>
#include <set>

#include "tasks/io/files.h"
#include "tasks/runner/report.h"
#include "tests/support/check.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("bars: of many rows only those with a result, of few all") {
  if (!has_gnuplot()) return;
  for (const int count : {4, 30}) {
    std::string toml =
        "[t]\ntitle = \"T\"\ntask = \"mnist\"\nmetric = \"test.accuracy\"\nfigure = \"bars\"\n[t.models]\n";
    for (int i = 0; i < count; ++i) toml += fmt::format("model{} = \"\"\n", i);
    Report report{parse_presets("f.toml", toml + "[t.reported]\nall = 0.5\n").at(0), 1, 1, "", {}};
    for (const Preset& p : report.table.presets) report.rows.push_back({p, {}});
    for (const std::size_t measured : {1U, 3U}) {
      report.rows[measured].runs.emplace_back();
      report.rows[measured].runs[0].measured = {0.75};
    }
    const TempDir dir;
    std::filesystem::create_directory(dir / "f");
    const ReportFigures drawn = draw_report(report, dir.path);
    CHECK(drawn.problems.empty());
    CHECK(drawn.unwritten.empty());
    REQUIRE(drawn.names.size() == 1);
    const std::string svg = read_file(dir / "f" + "/" + drawn.names[0]);
    for (int i = 0; i < count; ++i)
      CHECK(contains(svg, fmt::format(">model{}<", i)) == (count == 4 || i == 1 || i == 3));
  }
}

TEST_CASE("curves: a baseline is drawn if all rows of the figure have the same") {
  if (!has_gnuplot()) return;
  const std::string toml =
      "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n[t.cases]\na = \"\"\nb = \"\"\n";
  for (const double second : {0.25, 0.5, 0.0}) {  // 0: has none
    Report report{parse_presets("f.toml", toml).at(0), 1, 1, "", {}};
    for (const double baseline : {0.25, second}) {
      report.rows.push_back({report.table.presets[report.rows.size()], {}});
      PresetRun& run = report.rows.back().runs.emplace_back();
      run.measured = {0.75};
      run.baseline = baseline;
      run.curve = {{1, 8, 1, 3, 2, 0.5, 1}, {2, 16, 1, 3, 1, 0.5, 1}};
    }
    const TempDir dir;
    std::filesystem::create_directory(dir / "f");
    REQUIRE(draw_report(report, dir.path).names == std::vector<std::string>{"t.svg"});
    CHECK(contains(read_file(dir / "f/t.svg"), "baseline 0.25") == (second == 0.25));
    CHECK(contains(read_file(dir / "f/t.svg"), "baseline") == (second == 0.25));
  }
}

TEST_CASE("curves: a run that diverged is not in the mean of its row") {
  if (!has_gnuplot()) return;
  const std::string toml = "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"valid_loss\"\nmodels.a = \"\"\n";
  Report report{parse_presets("f.toml", toml).at(0), 1, 1, "", {}};
  report.rows.push_back({report.table.presets[0], {}});
  for (const bool diverged : {false, false, true}) {
    PresetRun& run = report.rows[0].runs.emplace_back();
    run.diverged = diverged;
    if (!diverged) run.measured = {0.75};
    run.curve = {{1, 8, 1, 3, 2, 0.5, 1}, {2, 16, 1, 3, 1, 0.5, 1}};
  }
  const TempDir dir;
  std::filesystem::create_directory(dir / "f");
  REQUIRE(draw_report(report, dir.path).names == std::vector<std::string>{"t.svg"});
  CHECK(contains(read_file(dir / "f/t.svg"), "(2 runs)<"));
}

TEST_CASE("curves: a mean over cases has none") {
  if (!has_gnuplot()) return;
  for (const char* figure : {"", "figure = \"bars\"\ncurves = true\n"}) {
    const std::string toml = fmt::format(
        "[t]\ntitle = \"T\"\ntask = \"adding\"\nmetric = \"valid_loss\"\n{}[t.cases]\na = \"\"\nb = \"\"\n"
        "[t.models]\nx = \"\"\ny = \"\"\n[t.mean]\n",
        figure);
    Report report{parse_presets("f.toml", toml).at(0), 1, 1, "", {}};
    for (const Preset& p : report.table.presets) {
      report.rows.push_back({p, {}});
      PresetRun& run = report.rows.back().runs.emplace_back();
      run.measured = {0.75};
      run.curve = {{1, 8, 1, 3, 2, 0.5, 1}, {2, 16, 1, 3, 1, 0.5, 1}};
    }
    add_means(report, report.table);
    REQUIRE(report.rows.size() == 6);
    const TempDir dir;
    std::filesystem::create_directory(dir / "f");
    const ReportFigures drawn = draw_report(report, dir.path);
    CHECK_MESSAGE(drawn.problems.empty(), drawn.problems.at(0));
    CHECK(drawn.names.size() == (*figure == '\0' ? 2 : 5));  // for each case; bars also of the means
  }
}

TEST_CASE("pictures: the names have seeds if there are several runs, in this call or before; none is there twice") {
  const std::string toml = "[t]\ntitle = \"T\"\ntask = \"adding\"\nmetric = \"valid_loss\"\nfigure = \"pictures\"\n";
  const TempDir dir;
  const PresetTable table = parse_presets("f.toml", toml + "models.a = \"\"\n").at(0);
  std::filesystem::create_directory(dir / "f");
  const auto drawn = [&](std::uint64_t seeds) {
    Report report{table, 1, 1, "", {{table.presets[0], {}}}};
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      PresetRun& run = report.rows[0].runs.emplace_back();
      run.seed = seed;
      run.measured = {0.75};
      run.folder = dir / fmt::format("run{}", seed);
      std::filesystem::create_directories(run.folder);
      for (const char* file : {"curve.svg", "states.svg", "states.png"})
        write_atomically(run.folder + "/" + file, fmt::format("{} {}", file, seed));
    }
    return draw_report(report, dir.path).names;
  };
  const auto there = [&] {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(dir / "f")) out.insert(entry.path().filename());
    return out;
  };
  using Names = std::vector<std::string>;
  CHECK(drawn(1) == Names{"t-a-states.svg"});
  CHECK(there() == std::set<std::string>{"t-a-states.png", "t-a-states.svg"});
  CHECK(drawn(2) == Names{"t-a-s1-states.svg", "t-a-s2-states.svg"});
  const std::set<std::string> both = there();
  CHECK(both ==
        std::set<std::string>{"t-a-s1-states.png", "t-a-s1-states.svg", "t-a-s2-states.png", "t-a-s2-states.svg"});
  CHECK(drawn(1) == Names{"t-a-s1-states.svg"});
  CHECK(there() == both);
  CHECK(read_file(dir / "f/t-a-s1-states.svg") == "states.svg 1");
}
